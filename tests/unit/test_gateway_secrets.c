/* test_gateway_secrets.c - /secrets as E2B has it; what leaves the gateway only the injector can
 * read.
 */
#include "tests/unit/gateway_mock.h"

#include "gateway/parse/secret_request.h"
#include "tls/seal.h"

struct vault { /* what the injector would hold */
	struct seal_key *key;
	char public_text[SEAL_KEY_TEXT + 1];
};

static void vault_open(struct vault *v, struct mock *m)
{
	struct err err = { 0 };

	if (seal_key_new(&v->key, &err) < 0 || seal_key_public(v->key, v->public_text, &err) < 0)
		fail_msg("%s", err.msg);
	m->seal_key = v->public_text;
}

/* What the injector reads of a sealed text that node was given. */
static void expect_sealed(const struct vault *v, const struct mock *m, const char *name,
			  const json_t *sealed, const char *value)
{
	AUTO(buf_done) struct buf plain = BUF_SECRET(SECRET_VALUE_MAX + 1);
	struct err err = { 0 };
	char label[256];

	snprintf(label, sizeof(label), "%s/%s", m->last.team, name);
	assert_true(json_is_string(sealed));
	if (unseal(v->key, bytes_str(label), json_bytes(sealed), &plain, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(bytes_eq(buf_view(&plain), bytes_str(value)));
}

static json_t *told(const struct mock *m)
{
	json_t *v = NULL;
	struct err err = { 0 };

	if (json_decode(bytes_str(m->last_text), NODE_TEXT_MAX, JSON_DEPTH_MAX, &v, &err) < 0)
		fail_msg("%s: %s", err.msg, m->last_text);
	return v;
}

static void expect_told(const struct vault *v, const struct mock *m, const char *name,
			const char *value)
{
	AUTO(json_decrefp) json_t *text = told(m);

	assert_int_equal(m->last.verb, NODE_SECRET);
	assert_string_equal(m->last.team, m->team[0]);
	assert_string_equal(json_string_value(json_object_get(text, "name")), name);
	if (value)
		expect_sealed(v, m, name, json_object_get(text, "sealed"), value);
	else
		assert_true(json_is_null(json_object_get(text, "sealed")));
}

static void expect_secret(const struct mock *m, const char *name, int version)
{
	assert_string_equal(mock_text(m, "name"), name);
	assert_int_equal(json_integer_value(json_object_get(m->json, "currentVersion")), version);
	assert_int_equal(strlen(mock_text(m, "secretID")), 30);
	assert_memory_equal(mock_text(m, "secretID"), "sec_", 4);
	assert_true(json_is_object(json_object_get(m->json, "metadata")));
	assert_true(strlen(mock_text(m, "createdAt")) > 20);
	assert_int_equal(json_object_size(m->json), 6);
	assert_non_null(strstr(m->fields, "Cache-Control: no-store\n"));
}

static void a_secret_lives(void **state)
{
	struct mock *m = *state;
	struct vault v;
	char path[64], created[64];

	vault_open(&v, m);
	assert_int_equal(mock_ask(m, "POST", "/secrets", m->key[0],
				  "{\"name\":\"My-Key\",\"value\":\"first\",\"metadata\":{\"a\":"
				  "\"b\"}}"),
			 201);
	expect_secret(m, "my-key", 1);
	expect_told(&v, m, "my-key", "first");
	snprintf(path, sizeof(path), "/secrets/%s", mock_text(m, "secretID"));
	snprintf(created, sizeof(created), "%s", mock_text(m, "createdAt"));

	/* by name and by id, in any case */
	assert_int_equal(mock_ask(m, "GET", "/secrets/MY-KEY", m->key[0], ""), 200);
	expect_secret(m, "my-key", 1);
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(m->json, "metadata"), "a")), "b");
	assert_int_equal(mock_ask(m, "GET", path, m->key[0], ""), 200);

	/* a new version: metadata stays, or is replaced */
	assert_int_equal(mock_ask(m, "POST", path, m->key[0], "{\"value\":\"second\"}"), 200);
	expect_secret(m, "my-key", 2);
	expect_told(&v, m, "my-key", "second");
	assert_int_equal(json_object_size(json_object_get(m->json, "metadata")), 1);
	assert_string_equal(mock_text(m, "createdAt"), created);
	assert_int_equal(mock_ask(m, "POST", "/secrets/my-key", m->key[0],
				  "{\"value\":\"third\",\"metadata\":{}}"),
			 200);
	assert_int_equal(json_object_size(json_object_get(m->json, "metadata")), 0);

	assert_int_equal(mock_ask(m, "DELETE", path, m->key[0], ""), 204);
	expect_told(&v, m, "my-key", NULL);
	assert_int_equal(mock_ask(m, "GET", path, m->key[0], ""), 404);
	mock_ask(m, "DELETE", path, m->key[0], "");
	mock_expect_error(m, 404);
	assert_string_equal(mock_text(m, "message"), "Secret not found");
	seal_key_free(v.key);
}

static void secrets_are_a_teams_own(void **state)
{
	struct mock *m = *state;
	struct vault v;
	char path[64];

	vault_open(&v, m);
	assert_int_equal(
		mock_ask(m, "POST", "/secrets", m->key[0], "{\"name\":\"k\",\"value\":\"v\"}"),
		201);
	snprintf(path, sizeof(path), "/secrets/%s", mock_text(m, "secretID"));
	assert_int_equal(mock_ask(m, "GET", path, m->key[1], ""), 404);
	assert_int_equal(mock_ask(m, "GET", "/secrets/k", m->key[1], ""), 404);
	assert_int_equal(mock_ask(m, "POST", path, m->key[1], "{\"value\":\"x\"}"), 404);
	assert_int_equal(mock_ask(m, "DELETE", path, m->key[1], ""), 404);
	assert_int_equal(mock_ask(m, "GET", "/secrets", m->key[1], ""), 200);
	assert_int_equal(json_array_size(m->json), 0);
	assert_int_equal(mock_ask(m, "GET", "/secrets", NULL, ""), 401);
	/* the same name twice: of one team no, of another one yes */
	mock_ask(m, "POST", "/secrets", m->key[0], "{\"name\":\"K\",\"value\":\"v\"}");
	mock_expect_error(m, 409);
	assert_int_equal(
		mock_ask(m, "POST", "/secrets", m->key[1], "{\"name\":\"k\",\"value\":\"v\"}"),
		201);
	/* a team that goes takes them along */
	snprintf(path, sizeof(path), "/admin/teams/%s", m->team[1]);
	assert_int_equal(mock_ask(m, "DELETE", path, NULL, ""), 204);
	seal_key_free(v.key);
}

static void pages_follow_each_other(void **state)
{
	enum { ALL = 7 };
	struct mock *m = *state;
	char seen[ALL + 1] = "", token[64], path[128], body[64];
	struct vault v;
	size_t n = 0;

	vault_open(&v, m);
	for (int i = 0; i < ALL; i++) {
		snprintf(body, sizeof(body), "{\"name\":\"s%c\",\"value\":\"v\"}", 'a' + i);
		assert_int_equal(mock_ask(m, "POST", "/secrets", m->key[0], body), 201);
	}
	snprintf(path, sizeof(path), "/secrets?limit=3");
	for (size_t pages = 1; pages <= 3; pages++) {
		const char *next;
		json_t *one;
		size_t i;

		assert_int_equal(mock_ask(m, "GET", path, m->key[0], ""), 200);
		assert_int_equal(json_array_size(m->json), pages < 3 ? 3 : 1);
		json_array_foreach(m->json, i, one)
		{
			const char *name = json_string_value(json_object_get(one, "name"));

			assert_null(strchr(seen, name[1]));
			seen[n++] = name[1];
		}
		next = strstr(m->fields, "X-Next-Token: ");
		assert_int_equal(next != NULL, pages < 3);
		if (!next)
			break;
		snprintf(token, sizeof(token), "%.30s", next + strlen("X-Next-Token: "));
		snprintf(path, sizeof(path), "/secrets?limit=3&nextToken=%s", token);
	}
	assert_int_equal(n, ALL);
	mock_ask(m, "GET", "/secrets?limit=0", m->key[0], "");
	mock_expect_error(m, 400);
	mock_ask(m, "GET", "/secrets?limit=101", m->key[0], "");
	mock_expect_error(m, 400);
	mock_ask(m, "GET", "/secrets?nextToken=sec_x", m->key[0], "");
	mock_expect_error(m, 400);
	seal_key_free(v.key);
}

static void bodies_are_checked(void **state)
{
	static const struct {
		const char *name, *body;
	} rows[] = {
		{ "no name", "{\"value\":\"v-s3cret\"}" },
		{ "no value", "{\"name\":\"a\"}" },
		{ "empty value", "{\"name\":\"a\",\"value\":\"\"}" },
		{ "line break", "{\"name\":\"a\",\"value\":\"v-s3cret\\r\\nX: y\"}" },
		{ "number", "{\"name\":\"a\",\"value\":17}" },
		{ "blank in name", "{\"name\":\"a b\",\"value\":\"v-s3cret\"}" },
		{ "looks like an id", "{\"name\":\"SEC_a\",\"value\":\"v-s3cret\"}" },
		{ "metadata", "{\"name\":\"a\",\"value\":\"v-s3cret\",\"metadata\":{\"a\":1}}" },
		{ "not JSON", "{\"name\":\"a\",\"value\":\"v-s3cret" },
		{ "array", "[\"v-s3cret\"]" },
	};
	struct mock *m = *state;
	struct vault v;

	vault_open(&v, m);
	FOR_ROWS(row, rows) {
		size_t before = m->asked;

		mock_ask(m, "POST", "/secrets", m->key[0], row->body);
		mock_expect_error(m, 400);
		assert_non_null(strstr(mock_text(m, "message"), "Invalid secrets request"));
		assert_null(strstr(mock_text(m, "message"), "s3cret"));
		assert_int_equal(m->asked, before);
	}
	assert_int_equal(mock_ask(m, "GET", "/secrets/sec_short", m->key[0], ""), 400);
	assert_int_equal(mock_ask(m, "GET", "/secrets/a%20b", m->key[0], ""), 400);
	seal_key_free(v.key);
}

static void limits_are_exact(void **state)
{
	AUTO(auto_free) char *body = malloc(SECRET_BODY_MAX + 1);
	struct secret_request r;
	struct err err = { 0 };

	(void)state;
	assert_non_null(body);
	for (int more = 0; more < 2; more++) {
		int rc;

		snprintf(body, SECRET_BODY_MAX, "{\"value\":\"%0*d\"}", SECRET_VALUE_MAX + more, 0);
		rc = secret_request_parse(bytes_str(body), true, &r, &err);
		assert_int_equal(rc, -more);
		if (rc == 0)
			secret_request_done(&r);
		snprintf(body, SECRET_BODY_MAX,
			 "{\"value\":\"v\",\"metadata\":{\"%0*d\":\"%0*d\"}}",
			 SECRET_METADATA_KEY_MAX, 0, SECRET_METADATA_VALUE_MAX + more, 0);
		rc = secret_request_parse(bytes_str(body), true, &r, &err);
		assert_int_equal(rc, -more);
		if (rc == 0)
			secret_request_done(&r);
	}
}

static void node_that_fails_is_told_about(void **state)
{
	struct mock *m = *state;
	struct vault v;

	mock_ask(m, "POST", "/secrets", m->key[0], "{\"name\":\"a\",\"value\":\"v\"}");
	mock_expect_error(m, 403);
	assert_string_equal(mock_text(m, "message"), "Secrets are not available for this team");
	vault_open(&v, m);
	m->refuse = ERR_UNAVAILABLE;
	mock_ask(m, "POST", "/secrets", m->key[0], "{\"name\":\"a\",\"value\":\"v\"}");
	mock_expect_error(m, 502);
	m->refuse = ERR_NONE;
	assert_int_equal(mock_ask(m, "GET", "/secrets/a", m->key[0], ""), 404);

	/* one that nobody can use yet is there all the same; changes say that they are not in force
	 */
	m->untold = ERR_UNAVAILABLE;
	assert_int_equal(
		mock_ask(m, "POST", "/secrets", m->key[0], "{\"name\":\"a\",\"value\":\"v\"}"),
		201);
	mock_ask(m, "POST", "/secrets/a", m->key[0], "{\"value\":\"w\"}");
	mock_expect_error(m, 502);
	mock_ask(m, "DELETE", "/secrets/a", m->key[0], "");
	mock_expect_error(m, 502);
	m->untold = ERR_NONE;
	m->n_told = 0;
	assert_int_equal(mock_ask(m, "DELETE", "/secrets/a", m->key[0], ""), 204);
	assert_int_equal(m->n_told, 2);
	seal_key_free(v.key);
}

#define RULES(value) \
	"\"rules\":{\"api.example.com\":[{\"transform\":{\"headers\":{\"A\":\"" value "\"}}}]}"

static void rules_take_along_what_they_name(void **state)
{
	static const char create[] = "{\"templateID\":\"base\",\"network\":{" RULES(
		"${e2b.secrets.One} ${e2b.secrets.missing} ${e2b.secrets.one}") "}}";
	struct mock *m = *state;
	AUTO(json_decrefp) json_t *text = NULL, *later = NULL;
	json_t *sealed;
	struct vault v;

	vault_open(&v, m);
	assert_int_equal(mock_ask(m, "POST", "/secrets", m->key[0],
				  "{\"name\":\"one\",\"value\":\"the value\"}"),
			 201);
	assert_int_equal(mock_ask(m, "POST", "/secrets", m->key[1],
				  "{\"name\":\"missing\",\"value\":\"another team's\"}"),
			 201);
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0], create), 201);
	assert_int_equal(m->last.verb, NODE_CREATE);
	text = told(m);
	sealed = json_object_get(text, "sealed");
	assert_int_equal(json_object_size(sealed), 1);
	assert_non_null(strstr(m->fields, "X-Hotcell-Warning: no secret missing: requests that "
					  "need it are refused until it is there\n"));
	expect_sealed(&v, m, "one", json_object_get(sealed, "one"), "the value");
	assert_null(strstr(m->last_text, "the value")); /* no base64 has a blank */

	assert_int_equal(mock_ask(m, "PUT", "/sandboxes/i0000/network", m->key[0],
				  "{" RULES("Bearer ${e2b.secrets.one}") "}"),
			 204);
	assert_int_equal(m->last.verb, NODE_NETWORK);
	later = told(m);
	expect_sealed(&v, m, "one", json_object_get(json_object_get(later, "sealed"), "one"),
		      "the value");

	/* what only looks like it, elsewhere, takes nothing along */
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0],
				  "{\"templateID\":\"base\",\"envVars\":{\"A\":\"${e2b.secrets."
				  "one}\"}}"),
			 201);
	assert_null(strstr(m->last_text, "\"sealed\""));
	seal_key_free(v.key);
}

static void nothing_shows_a_sealed_text(void **state)
{
	static const char create[] =
		"{\"templateID\":\"base\",\"network\":{" RULES("${e2b.secrets.one}") "}}";
	struct mock *m = *state;
	AUTO(auto_free) char *shown = NULL;
	struct vault v;

	vault_open(&v, m);
	assert_int_equal(
		mock_ask(m, "POST", "/secrets", m->key[0], "{\"name\":\"one\",\"value\":\"v1\"}"),
		201);
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0], create), 201);
	assert_int_equal(mock_ask(m, "GET", "/sandboxes/i0000", m->key[0], ""), 200);
	shown = json_dumps(m->json, 0);
	assert_non_null(shown);
	assert_null(strstr(shown, "sealed"));
	seal_key_free(v.key);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	const struct CMUnitTest tests[] = {
		T(a_secret_lives),
		T(secrets_are_a_teams_own),
		T(pages_follow_each_other),
		T(bodies_are_checked),
		cmocka_unit_test(limits_are_exact),
		T(node_that_fails_is_told_about),
		T(rules_take_along_what_they_name),
		T(nothing_shows_a_sealed_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
