/* test_gateway_keys.c - teams and keys: born, shown, renamed, dead at once; and the admin door. */
#include "tests/unit/gateway_mock.h"

#include "gateway/admin_door.h"
#include "net/dial.h"

static void a_key_knows_its_team(void **state)
{
	struct mock *m = *state;
	const json_t *team;

	assert_int_equal(mock_ask(m, "GET", "/teams", m->key[1], ""), 200);
	assert_int_equal(json_array_size(m->json), 1);
	team = json_array_get(m->json, 0);
	assert_string_equal(json_string_value(json_object_get(team, "teamID")), m->team[1]);
	assert_string_equal(json_string_value(json_object_get(team, "name")), "two");
	assert_string_equal(json_string_value(json_object_get(team, "apiKey")), m->key[1]);
	assert_true(json_is_true(json_object_get(team, "isDefault")));
}

/* As the E2B command line asks. */
static void a_bearer_is_a_key_for_teams_only(void **state)
{
	struct mock *m = *state;
	char value[64];
	const struct http1_field field = { BYTES_LIT("Authorization"), { (uint8_t *)value, 51 } };
	struct http_ask ask = { .method = BYTES_LIT("GET"),
				.target = BYTES_LIT("/teams"),
				.host = BYTES_LIT("h"),
				.fields = &field,
				.n_fields = 1 };
	struct err err = { 0 };

	snprintf(value, sizeof(value), "bearer %s", m->key[0]);
	for (unsigned int want = 200; want <= 401; want += 201) {
		int fd[2];

		unix_pair(fd);
		json_decref(m->json);
		m->json = NULL;
		m->done = false;
		if (http_server_add(&m->http, test_stream(m->l, fd[1]), NULL, &err) < 0 ||
		    http_call_stream(&m->call, test_stream(m->l, fd[0]), &ask, (struct bytes){ 0 },
				     MOCK_ANSWER_MAX, mock_on_answer, &err) < 0)
			fail_msg("%s", err.msg);
		RUN_UNTIL(m->l, m->done);
		assert_int_equal(m->status, want);
		ask.target = BYTES_LIT("/v2/sandboxes");
	}
}

static void keys_live_and_die(void **state)
{
	struct mock *m = *state;
	char key[API_KEY_SIZE], path[128];
	json_t *mask;

	assert_int_equal(mock_ask(m, "POST", "/api-keys", m->key[0], "{\"name\":\"new\"}"), 201);
	snprintf(key, sizeof(key), "%s", mock_text(m, "key"));
	assert_int_equal(strspn(key + 4, "0123456789abcdef"), 40);
	mask = json_object_get(m->json, "mask");
	assert_string_equal(json_string_value(json_object_get(mask, "prefix")), "e2b_");
	assert_int_equal(json_integer_value(json_object_get(mask, "valueLength")), 40);
	assert_memory_equal(json_string_value(json_object_get(mask, "maskedValuePrefix")), key + 4,
			    2);
	assert_string_equal(json_string_value(json_object_get(mask, "maskedValueSuffix")),
			    key + 40);
	snprintf(path, sizeof(path), "/api-keys/%s", mock_text(m, "id"));

	assert_int_equal(mock_ask(m, "GET", "/v2/sandboxes", key, ""), 200);
	mock_ask(m, "PATCH", path, m->key[1], "{\"name\":\"stolen\"}");
	mock_expect_error(m, 404);
	mock_ask(m, "DELETE", path, m->key[1], "");
	mock_expect_error(m, 404);
	assert_int_equal(mock_ask(m, "PATCH", path, m->key[0], "{\"name\":\"old\"}"), 200);
	assert_int_equal(m->body_len, 0);
	assert_int_equal(mock_ask(m, "GET", "/api-keys", m->key[0], ""), 200);
	assert_int_equal(json_array_size(m->json), 2);
	assert_string_equal(json_string_value(json_object_get(json_array_get(m->json, 1), "name")),
			    "old");
	assert_null(json_object_get(json_array_get(m->json, 1), "key"));

	assert_int_equal(mock_ask(m, "GET", "/v2/sandboxes", key, ""), 200); /* from the cache */
	assert_int_equal(mock_ask(m, "DELETE", path, m->key[0], ""), 204);
	mock_ask(m, "GET", "/v2/sandboxes", key, "");
	mock_expect_error(m, 401);
}

static void a_key_in_use_is_written_down(void **state)
{
	struct mock *m = *state;
	char path[128];
	const json_t *used;

	assert_int_equal(mock_ask(m, "GET", "/v2/sandboxes", m->key[1], ""), 200);
	RUN_UNTIL(m->l, !m->g.api->used_call.job);
	snprintf(path, sizeof(path), "/admin/teams/%s/keys", m->team[1]);
	assert_int_equal(mock_ask(m, "GET", path, NULL, ""), 200);
	used = json_object_get(json_array_get(m->json, 0), "lastUsed");
	assert_true(json_is_string(used));
}

static void names_are_checked(void **state)
{
	static const struct {
		const char *name;
	} rows[] = {
		{ "{}" },
		{ "{\"name\":\"\"}" },
		{ "{\"name\":7}" },
		{ "{\"name\":\"a\\nb\"}" },
		{ "{\"name\":"
		  "\"0123456789012345678901234567890123456789012345678901234567890123\"}" },
	};
	struct mock *m = *state;

	FOR_ROWS(row, rows) {
		mock_ask(m, "POST", "/api-keys", m->key[0], row->name);
		mock_expect_error(m, 400);
		mock_ask(m, "POST", "/admin/teams", NULL, row->name);
		mock_expect_error(m, 400);
	}
	mock_ask(m, "POST", "/admin/teams", NULL, "{\"name\":\"-x\"}");
	mock_expect_error(m, 400);
	mock_ask(m, "POST", "/admin/teams", NULL, "{\"name\":\"one\"}");
	mock_expect_error(m, 409);
	assert_int_equal(mock_ask(m, "POST", "/admin/teams", NULL, "{\"name\":\"My Team_2\"}"),
			 201);
	assert_string_equal(mock_text(m, "slug"), "my-team-2");
}

static void a_team_goes_with_its_keys(void **state)
{
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	assert_int_equal(mock_ask(m, "GET", "/teams", m->key[0], ""), 200);
	mock_ask(m, "DELETE", "/admin/teams/one", NULL, "");
	mock_expect_error(m, 409);
	assert_int_equal(mock_ask(m, "DELETE", "/admin/sandboxes/i0000", NULL, ""), 204);
	m->n = 0;
	free(m->all[0].text);
	assert_int_equal(mock_ask(m, "DELETE", "/admin/teams/one", NULL, ""), 204);
	mock_ask(m, "GET", "/teams", m->key[0], "");
	mock_expect_error(m, 401);
	mock_ask(m, "DELETE", "/admin/teams/one", NULL, "");
	mock_expect_error(m, 404);
	mock_ask(m, "GET", "/admin/teams/one/keys", NULL, "");
	mock_expect_error(m, 404);
	assert_int_equal(mock_ask(m, "GET", "/admin/teams", NULL, ""), 200);
	assert_int_equal(json_array_size(m->json), 1);
}

static void admin_revokes_at_once(void **state)
{
	struct mock *m = *state;
	char path[128];

	assert_int_equal(mock_ask(m, "GET", "/teams", m->key[0], ""), 200);
	assert_int_equal(mock_ask(m, "GET", "/admin/teams/one/keys", NULL, ""), 200);
	snprintf(path, sizeof(path), "/admin/keys/%s",
		 json_string_value(json_object_get(json_array_get(m->json, 0), "id")));
	assert_int_equal(mock_ask(m, "DELETE", path, NULL, ""), 204);
	mock_ask(m, "GET", "/teams", m->key[0], "");
	mock_expect_error(m, 401);
	mock_ask(m, "DELETE", path, NULL, "");
	mock_expect_error(m, 404);
}

/* Its client gone, a key is removed and forgotten all the same. */
static void a_revocation_survives_its_client(void **state)
{
	struct mock *m = *state;
	char path[128];

	assert_int_equal(mock_ask(m, "GET", "/teams", m->key[0], ""), 200);
	assert_int_equal(mock_ask(m, "GET", "/admin/teams/one/keys", NULL, ""), 200);
	snprintf(path, sizeof(path), "/admin/keys/%s",
		 json_string_value(json_object_get(json_array_get(m->json, 0), "id")));
	mock_send(m, &m->admin, "DELETE", path, NULL, (struct bytes){ 0 });
	RUN_UNTIL(m->l, m->g.api->n_calls == 1 && m->g.api->calls->store.job);
	http_call_cancel(&m->call);
	RUN_UNTIL(m->l, m->g.api->n_calls == 0);
	mock_ask(m, "GET", "/teams", m->key[0], "");
	mock_expect_error(m, 401);
}

static void how_it_is(void **state)
{
	struct mock *m = *state;

	assert_int_equal(mock_ask(m, "GET", "/admin/health", NULL, ""), 200);
	assert_string_equal(mock_text(m, "node"), "up");
	assert_int_equal(mock_ask(m, "GET", "/admin/status", NULL, ""), 200);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(m->json, "node"), "sandboxes")),
		3);
	m->refuse = ERR_UNAVAILABLE;
	assert_int_equal(mock_ask(m, "GET", "/admin/health", NULL, ""), 503);
	assert_string_equal(mock_text(m, "status"), "degraded");
	assert_string_equal(mock_text(m, "node"), "down");
	assert_string_equal(mock_text(m, "store"), "up");
}

struct visit {
	struct dial dial;
	struct stream *s;
	bool done;
};

static void on_dialled(struct dial *d, struct stream *s, const struct err *err)
{
	struct visit *v = CONTAINER_OF(d, struct visit, dial);

	(void)err;
	v->s = s;
	v->done = true;
}

static struct stream *visit(struct mock *m, const char *path)
{
	struct visit v = { 0 };
	struct err err = { 0 };
	struct addr at;

	assert_int_equal(addr_unix(path, &at, &err), 0);
	assert_int_equal(dial_start(&v.dial, m->l, &at, 5000, on_dialled, &err), 0);
	RUN_UNTIL(m->l, v.done);
	return v.s;
}

static void the_door_lets_few_in(void **state)
{
	struct mock *m = *state;
	struct http_ask ask = { .method = BYTES_LIT("GET"),
				.target = BYTES_LIT("/admin/teams"),
				.host = BYTES_LIT("h") };
	struct admin_door door = { 0 }, second = { 0 };
	struct err err = { 0 };
	char path[96];

	snprintf(path, sizeof(path), "%s/admin.sock", m->dir);
	if (admin_door_open(&door, &m->g, path, getuid(), &err) < 0)
		fail_msg("%s", err.msg);
	m->done = false;
	assert_int_equal(http_call_stream(&m->call, visit(m, path), &ask, (struct bytes){ 0 },
					  65536, mock_on_answer, &err),
			 0);
	RUN_UNTIL(m->l, m->done);
	assert_int_equal(m->status, 200);
	assert_int_equal(admin_door_open(&second, &m->g, path, getuid(), &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
	admin_door_close(&door);
	assert_int_equal(access(path, F_OK), -1);
}

/* Whoever is not root nor the user named is shown the way out. Only root can play somebody else. */
static void strangers_stay_outside(void **state)
{
	struct mock *m = *state;
	struct admin_door door = { 0 };
	struct err err = { 0 };
	char path[96];
	struct ear ear;

	if (geteuid() != 0)
		skip();
	snprintf(path, sizeof(path), "%s/admin.sock", m->dir);
	assert_int_equal(admin_door_open(&door, &m->g, path, 1234, &err), 0);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(chmod(m->dir, 0755), 0);
	assert_int_equal(seteuid(4321), 0);
	ear_init(&ear, visit(m, path));
	assert_int_equal(seteuid(0), 0);
	stream_read(ear.s, true);
	RUN_UNTIL(m->l, ear.ends + ear.fails > 0);
	assert_int_equal(door.http.n_conns, 0);
	ear_done(&ear);
	admin_door_close(&door);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	const struct CMUnitTest tests[] = {
		T(a_key_knows_its_team),
		T(a_bearer_is_a_key_for_teams_only),
		T(keys_live_and_die),
		T(a_key_in_use_is_written_down),
		T(names_are_checked),
		T(a_team_goes_with_its_keys),
		T(admin_revokes_at_once),
		T(a_revocation_survives_its_client),
		T(how_it_is),
		T(the_door_lets_few_in),
		T(strangers_stay_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
