/* test_gateway_list.c - lists through the control plane: filters, order, pages. */
#include "tests/unit/gateway_mock.h"

static const char *id_at(const struct mock *m, size_t i)
{
	return json_string_value(json_object_get(json_array_get(m->json, i), "sandboxID"));
}

/* The value of a field of the last answer; empty when it is not there. */
static const char *field(const struct mock *m, const char *name, char *ret, size_t size)
{
	size_t n = strlen(name);

	ret[0] = '\0';
	for (const char *at = m->fields; *at; at += strcspn(at, "\n") + 1)
		if (strncmp(at, name, n) == 0 && at[n] == ':')
			snprintf(ret, size, "%.*s", (int)strcspn(at + n + 2, "\n"), at + n + 2);
	return ret;
}

static void lists_have_every_member(void **state)
{
	static const char *const wanted[] = { "templateID", "sandboxID",   "clientID", "startedAt",
					      "endAt",      "cpuCount",    "memoryMB", "diskSizeMB",
					      "state",      "envdVersion", "alias",    "metadata" };
	struct mock *m = *state;
	char value[64];

	mock_add(m, m->team[0], "{\"metadata\":{\"k\":\"v\"}}");
	assert_int_equal(mock_ask(m, "GET", "/v2/sandboxes", m->key[0], ""), 200);
	assert_int_equal(json_array_size(m->json), 1);
	for (size_t i = 0; i < COUNT(wanted); i++)
		assert_non_null(json_object_get(json_array_get(m->json, 0), wanted[i]));
	assert_null(json_object_get(json_array_get(m->json, 0), "teamID"));
	assert_null(json_object_get(json_array_get(m->json, 0), "envdAccessToken"));
	assert_string_equal(field(m, "X-Total-Running", value, sizeof(value)), "1");
	assert_string_equal(field(m, "X-Next-Token", value, sizeof(value)), "");
}

static void each_team_sees_its_own(void **state)
{
	struct mock *m = *state;

	for (size_t i = 0; i < 30; i++)
		mock_add(m, m->team[i % 2], "{}");
	assert_int_equal(mock_ask(m, "GET", "/sandboxes", m->key[1], ""), 200);
	assert_int_equal(json_array_size(m->json), 15);
	for (size_t i = 0; i < 15; i++)
		assert_int_equal((id_at(m, i)[4] - '0') % 2, 1);
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes", NULL, ""), 200);
	assert_int_equal(json_array_size(m->json), 30);
	assert_string_equal(
		json_string_value(json_object_get(json_array_get(m->json, 0), "teamID")),
		m->team[1]);
}

/* All pages together are all sandboxes, each once, in order. */
static void walk(struct mock *m, const char *order, size_t first, int step)
{
	char token[512] = "", path[1024], total[64];
	size_t seen = 0, pages = 0;

	do {
		snprintf(path, sizeof(path), "/v2/sandboxes?limit=10&order=%s&nextToken=%s", order,
			 token);
		assert_int_equal(mock_ask(m, "GET", path, m->key[0], ""), 200);
		assert_string_equal(field(m, "X-Total-Running", total, sizeof(total)), "25");
		for (size_t i = 0; i < json_array_size(m->json); i++, seen++) {
			snprintf(path, sizeof(path), "i%04zu",
				 (size_t)((long)first + step * (long)seen));
			assert_string_equal(id_at(m, i), path);
		}
		field(m, "X-Next-Token", token, sizeof(token));
		pages++;
	} while (token[0]);
	assert_int_equal(seen, 25);
	assert_int_equal(pages, 3);
}

static void pages_go_both_ways(void **state)
{
	struct mock *m = *state;

	for (size_t i = 0; i < 25; i++)
		mock_add(m, m->team[0], "{}");
	m->all[7].s.started_ns = m->all[8].s.started_ns; /* a tie, decided by the id */
	walk(m, "desc", 24, -1);
	walk(m, "asc", 0, 1);
}

static void filters(void **state)
{
	static const struct {
		const char *name;
		size_t n;
	} rows[] = {
		{ "state=running", 4 },
		{ "state=paused", 1 },
		{ "state=running,paused", 5 },
		{ "state=running%2Cpaused", 5 },
		{ "", 5 },
		{ "metadata=a%252520b%3Dc%252526d", 1 },
		{ "metadata=user%3Dx", 2 },
		{ "metadata=user%3Dx%26n%3D1", 1 },
		{ "metadata=user%3Dnobody", 0 },
		{ "template=base", 5 },
		{ "template=tpl1", 5 },
		{ "template=other", 0 },
		{ "startedAfter=2023-11-14T22%3A13%3A20.002Z", 3 },
		{ "startedAfter=2023-11-14T22%3A13%3A20.002Z&state=paused", 1 },
		{ "startedAfter=2199-01-01T00%3A00%3A00Z", 0 },
		{ "unknown=1", 5 },
	};
	struct mock *m = *state;

	mock_add(m, m->team[0], "{\"metadata\":{\"a b\":\"c&d\"}}");
	mock_add(m, m->team[0], "{\"metadata\":{\"user\":\"x\"}}");
	mock_add(m, m->team[0], "{\"metadata\":{\"user\":\"x\",\"n\":\"1\"}}");
	mock_add(m, m->team[0], "{}");
	mock_add(m, m->team[0], "{}")->s.state = NODE_ENDING;
	mock_add(m, m->team[0], "{}")->s.state = NODE_PAUSED;
	FOR_ROWS(row, rows) {
		char path[256];

		snprintf(path, sizeof(path), "/v2/sandboxes?%s", row->name);
		assert_int_equal(mock_ask(m, "GET", path, m->key[0], ""), 200);
		assert_int_equal(json_array_size(m->json), row->n);
	}
}

/* Pausing moves nothing, and only those that run are counted. */
static void paused_ones_are_among_the_others(void **state)
{
	struct mock *m = *state;
	char value[64];

	for (size_t i = 0; i < 5; i++)
		mock_add(m, m->team[0], "{}")->s.state = i % 2 ? NODE_PAUSED : NODE_RUNNING;
	assert_int_equal(mock_ask(m, "GET", "/v2/sandboxes?limit=4", m->key[0], ""), 200);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(id_at(m, i)[4], '4' - (int)i);
	assert_string_equal(json_string_value(json_object_get(json_array_get(m->json, 1), "state")),
			    "paused");
	assert_string_equal(field(m, "X-Total-Running", value, sizeof(value)), "3");
	assert_string_not_equal(field(m, "X-Next-Token", value, sizeof(value)), "");
	assert_int_equal(mock_ask(m, "GET", "/v2/sandboxes?state=paused&order=asc", m->key[0], ""),
			 200);
	assert_int_equal(json_array_size(m->json), 2);
	assert_string_equal(id_at(m, 0), "i0001");
	assert_string_equal(field(m, "X-Total-Running", value, sizeof(value)), "");
	/* the first version knows no others */
	assert_int_equal(mock_ask(m, "GET", "/sandboxes", m->key[0], ""), 200);
	assert_int_equal(json_array_size(m->json), 3);
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes", NULL, ""), 200);
	assert_int_equal(json_array_size(m->json), 5);
}

/* What node tells of each in place of its text is its usage; clients are not told. */
static void an_operator_sees_what_each_uses(void **state)
{
	struct mock *m = *state;
	const json_t *first;

	mock_add(m, m->team[0], "{\"memUsed\":5}");
	mock_add(m, m->team[1], "");
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes?usage=true", NULL, ""), 200);
	assert_int_equal(m->last.flags, NODE_USAGE);
	assert_null(json_object_get(json_array_get(m->json, 0), "usage"));
	first = json_array_get(m->json, 1);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(first, "usage"), "memUsed")), 5);
	assert_int_equal(json_object_size(json_object_get(first, "metadata")), 0);
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes?usage=false", NULL, ""), 200);
	assert_int_equal(m->last.flags, 0);
	mock_ask(m, "GET", "/admin/sandboxes?usage=much", NULL, "");
	mock_expect_error(m, 400);
	mock_ask(m, "GET", "/admin/sandboxes?usage=true&metadata=a%3Db", NULL, "");
	mock_expect_error(m, 400);
	mock_ask(m, "GET", "/v2/sandboxes?usage=true", m->key[0], "");
	mock_expect_error(m, 400);
}

static void nonsense_is_refused(void **state)
{
	static const struct {
		const char *name;
	} rows[] = {
		{ "state=sleeping" },
		{ "order=up" },
		{ "limit=0" },
		{ "limit=101" },
		{ "limit=x" },
		{ "metadata=novalue" },
		{ "metadata=a%3Db%3Dc" },
		{ "metadata=%25zz%3D1" },
		{ "template=base%3Av1" },
		{ "startedAfter=yesterday" },
		{ "nextToken=AAAA" },
		{ "limit=1&limit=2" },
		/* of the other order */
		{ "nextToken=MjAyMy0xMS0xNFQyMjoxMzoyMC4wMDAwMDAwMDBaX19pMDAwMF9fYXNj" },
	};
	struct mock *m = *state;

	FOR_ROWS(row, rows) {
		char path[256];

		snprintf(path, sizeof(path), "/v2/sandboxes?%s", row->name);
		mock_ask(m, "GET", path, m->key[0], "");
		mock_expect_error(m, 400);
	}
	assert_string_equal(mock_text(m, "message"), "Invalid next token");
	assert_int_equal(m->asked, 0);
}

/* More metadata than one page holds: shorter pages, nothing lost. */
static void large_metadata(void **state)
{
	struct mock *m = *state;
	size_t n = 40 * 1024, seen = 0;
	char *text = malloc(n + 64), token[1024] = "", path[2048];

	assert_non_null(text);
	memset(text, 'x', n);
	memcpy(text, "{\"metadata\":{\"a\":\"", 18);
	memcpy(text + n - 3, "\"}}", 4);
	for (size_t i = 0; i < 150; i++)
		mock_add(m, m->team[0], text);
	do {
		snprintf(path, sizeof(path), "/v2/sandboxes?nextToken=%s", token);
		assert_int_equal(mock_ask(m, "GET", path, m->key[0], ""), 200);
		seen += json_array_size(m->json);
		field(m, "X-Next-Token", token, sizeof(token));
	} while (token[0]);
	assert_int_equal(seen, 150);
	free(text);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	const struct CMUnitTest tests[] = {
		T(lists_have_every_member),
		T(each_team_sees_its_own),
		T(pages_go_both_ways),
		T(filters),
		T(paused_ones_are_among_the_others),
		T(an_operator_sees_what_each_uses),
		T(nonsense_is_refused),
		T(large_metadata),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
