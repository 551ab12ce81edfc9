/* test_gateway_keys.c - teams and keys: born, shown, renamed, dead at once; and the admin door. */
#include "tests/unit/gateway_mock.h"

#include "gateway/api/admin_door.h"
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
				.n_fields = 1,
				.max_answer = MOCK_ANSWER_MAX };
	struct err err = { 0 };

	snprintf(value, sizeof(value), "bearer %s", m->key[0]);
	for (unsigned int want = 200; want <= 401; want += 201) {
		int fd[2];

		unix_pair(fd);
		json_decref(m->json);
		m->json = NULL;
		m->done = false;
		if (http_server_add(&m->http, test_stream(m->l, fd[1]), NULL, &err) < 0 ||
		    http_call_stream(&m->call, test_stream(m->l, fd[0]), &ask, mock_on_answer,
				     &err) < 0)
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

/* --- keys made by keys -------------------------------------------------------------------- */

struct minted {
	char key[API_KEY_SIZE], id[STORE_ID_SIZE];
};

/* By the key `by`; NULL: by the operator, for team "one". */
static struct minted mint(struct mock *m, const char *by)
{
	const char *path = by ? "/api-keys" : "/admin/teams/one/keys";
	struct minted k;

	assert_int_equal(mock_ask(m, "POST", path, by, "{\"name\":\"n\"}"), 201);
	snprintf(k.key, sizeof(k.key), "%s", mock_text(m, "key"));
	snprintf(k.id, sizeof(k.id), "%s", mock_text(m, "id"));
	return k;
}

static unsigned int change(struct mock *m, const char *method, const char *id, const char *what,
			   const char *body)
{
	char path[128];

	snprintf(path, sizeof(path), "/admin/keys/%s%s", id, what);
	return mock_ask(m, method, path, NULL, body);
}

/* Whose limits count for a create by this key, and what they are. */
static void expect_told(struct mock *m, const struct minted *by, const char *id, uint32_t sandboxes)
{
	static const char body[] = "{\"templateID\":\"base\"}";

	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", by->key, body), 201);
	assert_string_equal(m->last.key_id, id);
	assert_int_equal(m->last.limits.sandboxes, sandboxes);
}

static bool works(struct mock *m, const struct minted *k)
{
	unsigned int status = mock_ask(m, "GET", "/v2/sandboxes", k->key, "");

	assert_true(status == 200 || status == 401);
	return status == 200;
}

static void a_key_escapes_no_limit_by_making_another(void **state)
{
	struct mock *m = *state;
	struct minted first = mint(m, NULL), other = mint(m, NULL), child, grandchild;
	const json_t *limits;

	child = mint(m, first.key);
	expect_told(m, &child, first.id, 0);
	assert_int_equal(change(m, "PATCH", first.id, "/limits", "{\"sandboxes\":3}"), 200);
	expect_told(m, &first, first.id, 3);
	expect_told(m, &child, first.id, 3); /* at once, also of those there were */
	grandchild = mint(m, child.key);
	limits = json_object_get(m->json, "limits");
	assert_int_equal(json_integer_value(json_object_get(limits, "sandboxes")), 3);
	expect_told(m, &grandchild, first.id, 3);
	expect_told(m, &other, other.id, 0);
	change(m, "PATCH", child.id, "/limits", "{\"sandboxes\":9}"); /* they are the first one's */
	mock_expect_error(m, 409);
	assert_non_null(strstr(mock_text(m, "message"), first.id));
	expect_told(m, &grandchild, first.id, 3);
}

static void a_key_goes_with_the_key_that_made_it(void **state)
{
	struct mock *m = *state;
	struct minted first = mint(m, NULL), other = mint(m, NULL), a = mint(m, first.key), b, c;
	char path[128];

	b = mint(m, a.key);
	c = mint(m, first.key);
	assert_true(works(m, &a) && works(m, &b) && works(m, &c)); /* all are in the cache */
	snprintf(path, sizeof(path), "/api-keys/%s", a.id);
	assert_int_equal(mock_ask(m, "DELETE", path, c.key, ""), 204);
	assert_false(works(m, &a) || works(m, &b));
	assert_true(works(m, &first) && works(m, &c));
	assert_int_equal(change(m, "DELETE", first.id, "", ""), 204);
	assert_false(works(m, &first) || works(m, &c));
	assert_true(works(m, &other));
	assert_int_equal(mock_ask(m, "GET", "/teams", m->key[0], ""), 200);
}

/* The operator sees who made a key; a team's own list is as the API says. */
static void the_operator_sees_who_made_a_key(void **state)
{
	struct mock *m = *state;
	struct minted first = mint(m, NULL), child = mint(m, first.key);
	const json_t *last;

	assert_null(json_object_get(m->json, "maker"));
	assert_int_equal(mock_ask(m, "GET", "/api-keys", child.key, ""), 200);
	assert_null(json_object_get(json_array_get(m->json, 2), "maker"));
	assert_int_equal(mock_ask(m, "GET", "/admin/teams/one/keys", NULL, ""), 200);
	assert_int_equal(json_array_size(m->json), 3);
	last = json_array_get(m->json, 2);
	assert_string_equal(json_string_value(json_object_get(last, "maker")), first.id);
	assert_true(json_is_null(json_object_get(json_array_get(m->json, 1), "maker")));
}

static void a_rotated_key_is_dead_at_once_and_its_place_taken(void **state)
{
	struct mock *m = *state;
	struct minted first = mint(m, NULL), child = mint(m, first.key), fresh = first;

	assert_int_equal(change(m, "PATCH", first.id, "/limits", "{\"sandboxes\":3}"), 200);
	assert_true(works(m, &first) && works(m, &child));
	assert_int_equal(change(m, "POST", first.id, "/rotate", ""), 201);
	snprintf(fresh.key, sizeof(fresh.key), "%s", mock_text(m, "key"));
	assert_string_not_equal(fresh.key, first.key);
	assert_string_equal(mock_text(m, "id"), first.id);
	assert_string_equal(mock_text(m, "name"), "n");
	assert_false(works(m, &first));
	expect_told(m, &fresh, first.id, 3); /* what ran by the old one is counted on */
	expect_told(m, &child, first.id, 3);
	assert_int_equal(mock_ask(m, "GET", "/admin/teams/one/keys", NULL, ""), 200);
	assert_int_equal(json_array_size(m->json), 3);
	change(m, "POST", "nobody", "/rotate", "");
	mock_expect_error(m, 404);
	assert_int_equal(change(m, "DELETE", first.id, "", ""), 204);
	assert_false(works(m, &fresh) || works(m, &child));
}

static void teams_have_limits(void **state)
{
	static const char path[] = "/admin/teams/one/limits";
	struct mock *m = *state;
	struct minted k = mint(m, NULL);
	const json_t *limits;

	expect_told(m, &k, k.id, 0);
	assert_int_equal(m->last.team_limits.sandboxes, 0);
	assert_int_equal(mock_ask(m, "PATCH", path, NULL, "{\"sandboxes\":3,\"vcpus\":4}"), 200);
	assert_int_equal(
		mock_ask(m, "PATCH", path, NULL, "{\"vcpus\":null,\"memoryMB\":5,\"diskMB\":6}"),
		200);
	assert_int_equal(mock_ask(m, "PATCH", path, NULL, "{\"paused\":7}"), 200);
	assert_string_equal(mock_text(m, "name"), "one");
	limits = json_object_get(m->json, "limits");
	assert_int_equal(json_integer_value(json_object_get(limits, "sandboxes")), 3);
	assert_true(json_is_null(json_object_get(limits, "vcpus")));
	expect_told(m, &k, k.id, 0); /* at once, and the key has none of its own */
	assert_int_equal(m->last.team_limits.sandboxes, 3);
	assert_int_equal(m->last.team_limits.vcpus, 0);
	assert_int_equal(m->last.team_limits.memory_mib, 5);
	assert_int_equal(m->last.team_limits.disk_mib, 6);
	assert_int_equal(m->last.team_limits.paused, 7);
	assert_int_equal(
		mock_ask(m, "POST", "/v2/sandboxes", m->key[1], "{\"templateID\":\"base\"}"), 201);
	assert_int_equal(m->last.team_limits.sandboxes, 0); /* another team */
	mock_ask(m, "PATCH", path, NULL, "{\"sandboxes\":-1}");
	mock_expect_error(m, 400);
	mock_ask(m, "PATCH", "/admin/teams/nobody/limits", NULL, "{}");
	mock_expect_error(m, 404);
}

static void how_it_is(void **state)
{
	struct mock *m = *state;
	const json_t *versions;

	assert_int_equal(mock_ask(m, "GET", "/admin/health", NULL, ""), 200);
	assert_string_equal(mock_text(m, "node"), "up");
	assert_int_equal(mock_ask(m, "GET", "/admin/status", NULL, ""), 200);
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(m->json, "node"), "sandboxes")),
		3);
	versions = json_object_get(m->json, "versions");
	assert_string_equal(json_string_value(json_object_get(versions, "gateway")), link_build);
	assert_string_equal(json_string_value(json_object_get(versions, "node")), link_build);
	assert_int_equal(json_array_size(json_object_get(m->json, "mismatches")), 0);
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
				.host = BYTES_LIT("h"),
				.max_answer = 65536 };
	struct admin_door door = { 0 }, second = { 0 };
	struct err err = { 0 };
	char path[96];

	snprintf(path, sizeof(path), "%s/admin.sock", m->dir);
	if (admin_door_open(&door, &m->g, path, getuid(), &err) < 0)
		fail_msg("%s", err.msg);
	m->done = false;
	assert_int_equal(http_call_stream(&m->call, visit(m, path), &ask, mock_on_answer, &err), 0);
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
		T(a_key_escapes_no_limit_by_making_another),
		T(a_key_goes_with_the_key_that_made_it),
		T(the_operator_sees_who_made_a_key),
		T(a_rotated_key_is_dead_at_once_and_its_place_taken),
		T(teams_have_limits),
		T(how_it_is),
		T(the_door_lets_few_in),
		T(strangers_stay_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
