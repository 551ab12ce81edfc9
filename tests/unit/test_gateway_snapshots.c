/* test_gateway_snapshots.c - snapshots and forks as E2B's clients ask for them. */
#include "tests/unit/gateway_mock.h"

#define UNNAMED "{\"snapshotID\":\"abc\",\"name\":\"\",\"tag\":\"default\",\"createdNs\":\"5\"}"
#define NAMED   "{\"snapshotID\":\"xyz\",\"name\":\"work\",\"tag\":\"v1\",\"createdNs\":\"7\"}"

static const char *member(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s ? s : "(none)";
}

static void taken(void **state)
{
	struct mock *m = *state;
	json_t *names;

	mock_add(m, m->team[0], "{}");
	m->record = UNNAMED;
	assert_int_equal(mock_ask(m, "POST", "/sandboxes/i0000/snapshots", m->key[0], "{}"), 201);
	assert_int_equal(m->last.verb, NODE_SNAPSHOT);
	assert_string_equal(m->last.template_id, "");
	assert_string_equal(mock_text(m, "snapshotID"), "abc:default");
	names = json_object_get(m->json, "names");
	assert_true(json_is_array(names) && json_array_size(names) == 0);

	m->record = NAMED;
	assert_int_equal(mock_ask(m, "POST", "/sandboxes/i0000/snapshots", m->key[0],
				  "{\"name\":\"Work:v1\"}"),
			 201);
	assert_string_equal(m->last.template_id, "work");
	assert_string_equal(m->last.template_tag, "v1");
	assert_non_null(strstr(mock_text(m, "snapshotID"), "/work:v1"));
	names = json_object_get(m->json, "names");
	assert_int_equal(json_array_size(names), 1);
	assert_non_null(strstr(json_string_value(json_array_get(names, 0)), "/work"));
}

static void not_taken(void **state)
{
	static const struct {
		const char *name;
		unsigned int status;
	} rows[] = {
		{ "{\"name\":\"a b\"}", 400 },
		{ "{\"name\":5}", 400 },
		{ "{\"memory\":5}", 400 },
		{ "{\"memory\":false}", 400 },
		{ "{\"name\":\"stranger/work\"}", 404 },
		{ "[]", 400 },
	};
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	FOR_ROWS(row, rows) {
		mock_ask(m, "POST", "/sandboxes/i0000/snapshots", m->key[0], row->name);
		mock_expect_error(m, row->status);
	}
	mock_ask(m, "POST", "/sandboxes/i0000/snapshots", m->key[1], "{}");
	mock_expect_error(m, 404);
	m->refuse = ERR_EXISTS;
	mock_ask(m, "POST", "/sandboxes/i0000/snapshots", m->key[0], "{}");
	mock_expect_error(m, 409);
}

static void listed(void **state)
{
	struct mock *m = *state;

	assert_int_equal(mock_ask(m, "GET", "/snapshots", m->key[0], ""), 200);
	assert_int_equal(json_array_size(m->json), 0);
	assert_string_equal(m->last.team, m->team[0]);
	m->record = "[" NAMED "," UNNAMED "]";
	assert_int_equal(mock_ask(m, "GET",
				  "/snapshots?sandboxID=i1&name=work%3Av1&limit=2&nextToken=99",
				  m->key[0], ""),
			 200);
	assert_string_equal(m->last.id, "i1");
	assert_string_equal(m->last.template_id, "work");
	assert_string_equal(m->last.template_tag, "v1");
	assert_int_equal(m->last.count, 3); /* one more: is there another page? */
	assert_int_equal(m->last.after_ns, 99);
	assert_int_equal(json_array_size(m->json), 2);
	assert_string_equal(member(json_array_get(m->json, 1), "snapshotID"), "abc:default");
	assert_null(strcasestr(m->fields, "x-next-token: "));
	assert_int_equal(mock_ask(m, "GET", "/snapshots?limit=1", m->key[0], ""), 200);
	assert_int_equal(json_array_size(m->json), 1);
	assert_non_null(strcasestr(m->fields, "x-next-token: 7"));
	assert_int_equal(mock_ask(m, "GET", "/admin/snapshots", NULL, ""), 200);
	assert_int_equal(json_array_size(m->json), 2);
	assert_string_equal(member(json_array_get(m->json, 0), "snapshotID"), "xyz");
	assert_string_equal(m->last.team, "");
	for (size_t i = 0; i < 3; i++) {
		static const char *const bad[] = { "limit=0", "limit=x", "nextToken=a" };
		char target[64];

		snprintf(target, sizeof(target), "/snapshots?%s", bad[i]);
		mock_ask(m, "GET", target, m->key[0], "");
		mock_expect_error(m, 400);
	}
	m->record = "nonsense";
	mock_ask(m, "GET", "/snapshots", m->key[0], "");
	mock_expect_error(m, 500);
}

static void deleted(void **state)
{
	struct mock *m = *state;

	assert_int_equal(mock_ask(m, "DELETE", "/templates/abc:default", m->key[0], ""), 204);
	assert_string_equal(m->last.template_id, "abc");
	assert_string_equal(m->last.template_tag, "default");
	assert_string_equal(m->last.team, m->team[0]);
	mock_ask(m, "DELETE", "/templates/stranger%2Fwork:v1", m->key[0], "");
	mock_expect_error(m, 404);
	m->refuse = ERR_INVALID;
	mock_ask(m, "DELETE", "/templates/abc", m->key[0], "");
	mock_expect_error(m, 400);
}

static void forked(void **state)
{
	struct mock *m = *state;
	json_t *first, *second;

	mock_add(m, m->team[0], "{}");
	assert_int_equal(mock_ask(m, "POST", "/sandboxes/i0000/fork", m->key[0], "{}"), 201);
	assert_int_equal(m->last.verb, NODE_FORK);
	assert_int_equal(m->last.count, 1);
	assert_int_equal(m->last.timeout_s, 15);
	assert_true(m->last.key_id[0]);
	assert_int_equal(mock_ask(m, "POST", "/sandboxes/i0000/fork", m->key[0],
				  "{\"count\":3,\"timeout\":300}"),
			 201);
	assert_int_equal(json_array_size(m->json), 3);
	assert_int_equal(m->last.flags, 0);
	first = json_object_get(json_array_get(m->json, 0), "sandbox");
	assert_string_equal(member(first, "sandboxID"), "icopy");
	assert_string_equal(member(first, "envdAccessToken"), "secret");
	second = json_object_get(json_array_get(m->json, 1), "error");
	assert_int_equal(json_integer_value(json_object_get(second, "code")), 429);
	assert_string_equal(member(second, "message"), "no more room");
	assert_null(json_object_get(json_array_get(m->json, 1), "sandbox"));
	assert_int_equal(
		mock_ask(m, "POST", "/sandboxes/i0000/fork", m->key[0], "{\"allowPaused\":true}"),
		201);
	assert_int_equal(m->last.flags, NODE_ALSO_PAUSED);
	assert_int_equal(mock_ask(m, "POST", "/admin/sandboxes/i0000/fork", NULL, "{}"), 201);
	assert_int_equal(m->last.flags, NODE_ALSO_PAUSED);
}

static void not_forked(void **state)
{
	static const struct {
		const char *name;
	} rows[] = {
		{ "{\"count\":0}" },
		{ "{\"count\":101}" },
		{ "{\"count\":\"x\"}" },
		{ "{\"timeout\":-1}" },
		{ "[]" },
	};
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	FOR_ROWS(row, rows) {
		mock_ask(m, "POST", "/sandboxes/i0000/fork", m->key[0], row->name);
		mock_expect_error(m, 400);
	}
	mock_ask(m, "POST", "/sandboxes/i0000/fork", m->key[1], "{}");
	mock_expect_error(m, 404);
	m->refuse = ERR_EXISTS;
	mock_ask(m, "POST", "/sandboxes/i0000/fork", m->key[0], "{}");
	mock_expect_error(m, 409);
}

/* Nobody is told of what node makes: it hears so, and nothing of it stays. */
static void a_client_that_hangs_up_gives_it_up(void **state)
{
	static const struct {
		const char *name, *path, *body;
	} rows[] = {
		{ "create", "/sandboxes", "{\"templateID\":\"base\"}" },
		{ "fork", "/sandboxes/i0000/fork", "{\"count\":2}" },
		{ "snapshot", "/sandboxes/i0000/snapshots", "{}" },
	};
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	FOR_ROWS(row, rows) {
		m->hold = true;
		m->given_up[0] = '\0';
		mock_send(m, &m->http, "POST", row->path, m->key[0], bytes_str(row->body));
		RUN_UNTIL(m->l, m->held);
		http_call_cancel(&m->call);
		RUN_UNTIL(m->l, m->given_up[0]);
		assert_int_equal(strlen(m->token), NODE_TOKEN_LENGTH);
		assert_string_equal(m->given_up, m->token);
		RUN_UNTIL(m->l, !m->g.api->calls);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	const struct CMUnitTest tests[] = {
		T(taken),
		T(not_taken),
		T(listed),
		T(deleted),
		T(forked),
		T(not_forked),
		T(a_client_that_hangs_up_gives_it_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
