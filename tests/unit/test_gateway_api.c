/* test_gateway_api.c - sandboxes, templates and errors through the control plane. */
#include "base/clock.h"
#include "tests/unit/gateway_mock.h"

static void health_needs_nothing(void **state)
{
	struct mock *m = *state;

	assert_int_equal(mock_ask(m, "GET", "/health", NULL, ""), 204);
	assert_int_equal(m->body_len, 0);
	assert_int_equal(mock_ask(m, "HEAD", "/health", NULL, ""), 204);
}

static void keys_are_wanted(void **state)
{
	static const struct {
		const char *name, *method;
	} rows[] = {
		{ "/sandboxes", "POST" },
		{ "/v2/sandboxes", "GET" },
		{ "/sandboxes/i0000", "GET" },
		{ "/sandboxes/i0000", "DELETE" },
		{ "/teams", "GET" },
		{ "/api-keys", "POST" },
		{ "/templates", "GET" },
		{ "/v3/templates", "POST" },
		{ "/sandboxes/x/pause", "POST" },
	};
	struct mock *m = *state;
	char wrong[API_KEY_SIZE];

	memcpy(wrong, m->key[0], sizeof(wrong));
	wrong[10] = wrong[10] == 'a' ? 'b' : 'a';
	FOR_ROWS(row, rows) {
		mock_ask(m, row->method, row->name, NULL, "{}");
		mock_expect_error(m, 401);
		mock_ask(m, row->method, row->name, "e2b_nonsense", "{}");
		mock_expect_error(m, 401);
		mock_ask(m, row->method, row->name, wrong, "{}");
		mock_expect_error(m, 401);
	}
	assert_int_equal(m->asked, 0); /* node never heard of it */
}

static void paths_that_do_not_exist(void **state)
{
	static const struct {
		const char *name, *method;
		unsigned int status;
	} rows[] = {
		{ "/nothing", "GET", 404 },      { "/", "GET", 404 },
		{ "/sandboxes/", "GET", 404 },   { "/sandboxes/a/b/c", "GET", 404 },
		{ "/admin/teams", "GET", 404 }, /* not by this door */
		{ "/sandboxes", "DELETE", 405 }, { "/sandboxes/%zz", "GET", 400 },
		{ "/sandboxes/..", "GET", 400 },
	};
	struct mock *m = *state;

	FOR_ROWS(row, rows) {
		mock_ask(m, row->method, row->name, m->key[0], "");
		mock_expect_error(m, row->status);
	}
	mock_ask(m, "PATCH", "/sandboxes/i1", m->key[0], "");
	mock_expect_error(m, 405);
	assert_non_null(strstr(m->fields, "Allow: GET, DELETE\n"));
	assert_int_equal(mock_ask(m, "GET", "/%73andboxes", m->key[0], ""), 200);
}

static void create_has_every_member(void **state)
{
	struct mock *m = *state;

	snprintf(m->g.domain, sizeof(m->g.domain), "sbx.test:8080");
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0],
				  "{\"templateID\":\"Base:default\",\"metadata\":{\"a\":\"b\"}}"),
			 201);
	assert_string_equal(mock_text(m, "sandboxID"), "i0000");
	assert_string_equal(mock_text(m, "templateID"), "tpl1");
	assert_string_equal(mock_text(m, "alias"), "base");
	assert_string_equal(mock_text(m, "clientID"), "6532622b");
	assert_string_equal(mock_text(m, "envdVersion"), "0.6.13");
	assert_string_equal(mock_text(m, "envdAccessToken"), "secret");
	assert_string_equal(mock_text(m, "domain"), "sbx.test:8080");
	assert_true(json_is_null(json_object_get(m->json, "trafficAccessToken")));
	assert_int_equal(m->last.timeout_s, 300);
	assert_string_equal(m->last.team, m->team[0]);
	assert_string_equal(m->last_text, "{\"metadata\":{\"a\":\"b\"},\"envVars\":{}}");
	assert_non_null(strstr(m->fields, "Access-Control-Allow-Origin: *\n"));
	assert_non_null(strstr(m->fields, "X-Next-Token"));

	assert_int_equal(mock_ask(m, "POST", "/sandboxes", m->key[0],
				  "{\"templateID\":\"base\",\"secure\":false}"),
			 201);
	assert_int_equal(m->last.timeout_s, 15);
	assert_null(json_object_get(m->json, "envdAccessToken"));
}

static void a_private_one_has_a_token(void **state)
{
	struct mock *m = *state;

	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0],
				  "{\"templateID\":\"base\",\"network\":{\"allowPublicTraffic\":"
				  "false,\"maskRequestHost\":\"localhost:${PORT}\"}}"),
			 201);
	assert_int_equal(m->last.flags, NODE_SECURE | NODE_PRIVATE | NODE_INGRESS);
	assert_string_equal(mock_text(m, "trafficAccessToken"), "of traffic");
	assert_non_null(strstr(m->last_text, "localhost:${PORT}"));
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes/i0000/connect", m->key[0], "{}"), 200);
	assert_string_equal(mock_text(m, "trafficAccessToken"), "of traffic");
	mock_ask(m, "POST", "/sandboxes", m->key[0],
		 "{\"templateID\":\"base\",\"secure\":false,\"network\":{\"allowPublicTraffic\":"
		 "false}}");
	mock_expect_error(m, 400);
}

static void create_refuses(void **state)
{
	static const struct {
		const char *name;
		unsigned int status;
		const char *message;
	} rows[] = {
		{ "{\"templateID\":\"none\"}", 404, "template 'none' not found" },
		{ "{\"templateID\":\"base:v2\"}", 404,
		  "tag 'v2' does not exist for template 'base'" },
		{ "{\"templateID\":\"base\",\"timeout\":0}", 400,
		  "Timeout must be greater than 0" },
		{ "{\"templateID\":\"base\",\"timeout\":90000}", 400,
		  "Timeout cannot be greater than 24 hours" },
		{ "{\"templateID\":\"base\",\"timeout\":9999999999}", 400,
		  "Timeout cannot be greater than 24 hours" },
		{ "{\"templateID\":\"base\",\"autoPauseMemory\":false}", 400,
		  "autoPauseMemory = false needs autoPause" },
		{ "{}", 400, "templateID is missing" },
	};
	struct mock *m = *state;

	FOR_ROWS(row, rows) {
		mock_ask(m, "POST", "/v2/sandboxes", m->key[0], row->name);
		mock_expect_error(m, row->status);
		assert_string_equal(mock_text(m, "message"), row->message);
	}
	mock_ask(m, "POST", "/v2/sandboxes", m->key[0], "not JSON");
	mock_expect_error(m, 400);
	mock_ask(m, "POST", "/v2/sandboxes", m->key[0], "[]");
	mock_expect_error(m, 400);
	mock_ask(m, "POST", "/v2/sandboxes", m->key[0], "");
	mock_expect_error(m, 400);
	assert_int_equal(m->n, 0);
}

static void get_says_all(void **state)
{
	struct mock *m = *state;
	json_t *network;

	mock_add(m, m->team[0],
		 "{\"metadata\":{\"a\":\"b\"},\"allowInternetAccess\":false,\"network\":{"
		 "\"allowOut\":[\"1.2.3.4\"],\"egressProxy\":{\"address\":\"x\",\"password\":\"p\"}"
		 "}}");
	assert_int_equal(mock_ask(m, "GET", "/sandboxes/i0000-6532622b", m->key[0], ""), 200);
	assert_string_equal(mock_text(m, "sandboxID"), "i0000");
	assert_string_equal(mock_text(m, "startedAt"), "2023-11-14T22:13:20.000000Z");
	assert_string_equal(mock_text(m, "endAt"), "2023-11-14T22:18:20.000000Z");
	assert_string_equal(mock_text(m, "state"), "running");
	assert_string_equal(mock_text(m, "clientID"), "6532622b");
	assert_string_equal(mock_text(m, "envdVersion"), "0.6.13");
	assert_string_equal(mock_text(m, "envdAccessToken"), "secret");
	assert_int_equal(json_integer_value(json_object_get(m->json, "cpuCount")), 2);
	assert_int_equal(json_integer_value(json_object_get(m->json, "memoryMB")), 512);
	assert_int_equal(json_integer_value(json_object_get(m->json, "diskSizeMB")), 1024);
	assert_string_equal(mock_text(m, "domain"), "localhost"); /* as the client called it */
	assert_true(json_is_false(json_object_get(m->json, "allowInternetAccess")));
	network = json_object_get(m->json, "network");
	assert_int_equal(json_array_size(json_object_get(network, "allowOut")), 1);
	assert_null(json_object_get(json_object_get(network, "egressProxy"), "password"));
	assert_string_equal(json_string_value(json_object_get(json_object_get(m->json, "lifecycle"),
							      "onTimeout")),
			    "kill");
}

static void other_teams_do_not_exist(void **state)
{
	static const struct {
		const char *name, *method, *body;
	} rows[] = {
		{ "/sandboxes/i0000", "GET", "" },
		{ "/sandboxes/i0000", "DELETE", "" },
		{ "/sandboxes/i0000/timeout", "POST", "{\"timeout\":1}" },
		{ "/sandboxes/i0000/refreshes", "POST", "{}" },
		{ "/sandboxes/i0000/connect", "POST", "{\"timeout\":1}" },
		{ "/v2/sandboxes/i0000/connect", "POST", "{}" },
		{ "/sandboxes/i0000/pause", "POST", "{}" },
		{ "/sandboxes/i0000/metrics", "GET", "" },
		{ "/sandboxes/i0000/network", "PUT", "{}" },
	};
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	FOR_ROWS(row, rows) {
		mock_ask(m, row->method, row->name, m->key[1], row->body);
		mock_expect_error(m, 404);
		assert_string_equal(
			mock_text(m, "message"),
			"Sandbox \"i0000\" doesn't exist or you don't have access to it");
		assert_string_equal(m->last.team, m->team[1]);
	}
	assert_int_equal(mock_ask(m, "GET", "/sandboxes/i0000", m->key[0], ""), 200);
}

static void ids_are_checked(void **state)
{
	struct mock *m = *state;

	mock_ask(m, "GET", "/sandboxes/a-b-c", m->key[0], "");
	mock_expect_error(m, 400);
	assert_string_equal(mock_text(m, "message"), "Invalid sandbox ID");
	mock_ask(m, "GET", "/sandboxes/UPPER", m->key[0], "");
	mock_expect_error(m, 400);
	mock_ask(m, "GET", "/sandboxes/a%2Fb", m->key[0], "");
	mock_expect_error(m, 400);
	assert_int_equal(m->asked, 0);
}

static void timeouts(void **state)
{
	static const struct {
		const char *name, *path, *body;
		unsigned int status, seconds, verb;
	} rows[] = {
		{ "set", "/sandboxes/i0000/timeout", "{\"timeout\":7}", 204, 7, NODE_TIMEOUT },
		{ "now", "/sandboxes/i0000/timeout", "{\"timeout\":0}", 204, 0, NODE_TIMEOUT },
		{ "told", "/sandboxes/i0000/timeout", "{\"timeout\":999999}", 204, 999999,
		  NODE_TIMEOUT },
		{ "capped", "/sandboxes/i0000/timeout", "{\"timeout\":99999999999}", 204,
		  NODE_TIMEOUT_MAX_S, NODE_TIMEOUT },
		{ "wanted", "/sandboxes/i0000/timeout", "{}", 400, 0, 0 },
		{ "negative", "/sandboxes/i0000/timeout", "{\"timeout\":-1}", 400, 0, 0 },
		{ "refresh too long", "/sandboxes/i0000/refreshes", "{\"duration\":3601}", 400, 0,
		  0 },
		{ "connect", "/sandboxes/i0000/connect", "{\"timeout\":20}", 200, 20,
		  NODE_CONNECT },
		{ "connect v1 wants it", "/sandboxes/i0000/connect", "{}", 400, 0, 0 },
		{ "connect v2", "/v2/sandboxes/i0000/connect", "", 200, 300, NODE_CONNECT },
		{ "memory is true or false", "/v2/sandboxes/i0000/connect", "{\"memory\":1}", 400,
		  0, 0 },
	};
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	FOR_ROWS(row, rows) {
		size_t asked = m->asked;

		assert_int_equal(mock_ask(m, "POST", row->path, m->key[0], row->body), row->status);
		assert_int_equal(m->asked, asked + (row->status < 400));
		if (row->status >= 400)
			continue;
		assert_int_equal(m->last.verb, row->verb);
		assert_int_equal(m->last.timeout_s, row->seconds);
	}
	/* only node knows how long is too long */
	mock_ask(m, "POST", "/v2/sandboxes/i0000/connect", m->key[0], "{\"timeout\":90000}");
	mock_expect_error(m, 400);
	assert_string_equal(mock_text(m, "message"), "Timeout cannot be greater than 24 hours");
}

static void refreshes_only_extend(void **state)
{
	struct mock *m = *state;
	struct mock_sandbox *b = mock_add(m, m->team[0], "{}");

	/* its time is over, as the table says: this is longer */
	assert_int_equal(mock_ask(m, "POST", "/sandboxes/i0000/refreshes", m->key[0], ""), 204);
	assert_int_equal(m->last.verb, NODE_TIMEOUT);
	assert_int_equal(m->last.timeout_s, 15);
	assert_int_equal(
		mock_ask(m, "POST", "/sandboxes/i0000/refreshes", m->key[0], "{\"duration\":60}"),
		204);
	assert_int_equal(m->last.timeout_s, 60);
	b->s.end_ns = clock_wall_ns() + 3600 * NSEC_PER_SEC;
	assert_int_equal(
		mock_ask(m, "POST", "/sandboxes/i0000/refreshes", m->key[0], "{\"duration\":60}"),
		204);
	assert_int_equal(m->last.verb, NODE_GET);
	b->s.state = NODE_PAUSED;
	mock_ask(m, "POST", "/sandboxes/i0000/refreshes", m->key[0], "");
	mock_expect_error(m, 409);
	assert_int_equal(b->s.state, NODE_PAUSED);
}

static void kill_twice(void **state)
{
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	assert_int_equal(mock_ask(m, "DELETE", "/sandboxes/i0000", m->key[0], ""), 204);
	mock_ask(m, "DELETE", "/sandboxes/i0000", m->key[0], "");
	mock_expect_error(m, 404);
	assert_string_equal(mock_text(m, "reason"), "killed");
}

static void errors_of_node_have_a_status(void **state)
{
	static const struct {
		const char *name;
		enum err_code code;
		unsigned int status;
	} rows[] = {
		{ "invalid", ERR_INVALID, 400 },         { "exists", ERR_EXISTS, 409 },
		{ "denied", ERR_DENIED, 403 },           { "exhausted", ERR_EXHAUSTED, 429 },
		{ "unavailable", ERR_UNAVAILABLE, 503 }, { "timeout", ERR_TIMEOUT, 504 },
		{ "mismatch", ERR_MISMATCH, 412 },       { "internal", ERR_INTERNAL, 500 },
		{ "no space", ERR_NO_SPACE, 507 },       { "base lost", ERR_BASE_LOST, 412 },
	};
	struct mock *m = *state;

	FOR_ROWS(row, rows) {
		bool later = row->status == 429 || row->status == 503;

		m->refuse = row->code;
		mock_ask(m, "POST", "/sandboxes", m->key[0], "{\"templateID\":\"base\"}");
		mock_expect_error(m, row->status);
		assert_int_equal(strstr(m->fields, "Retry-After: 1\n") != NULL, later);
	}
	m->refuse = ERR_EXHAUSTED;
	m->retry_s = 17;
	mock_ask(m, "POST", "/sandboxes", m->key[0], "{\"templateID\":\"base\"}");
	mock_expect_error(m, 429);
	assert_non_null(strstr(m->fields, "Retry-After: 17\n"));
}

static void bodies_have_a_limit(void **state)
{
	struct mock *m = *state;
	size_t n = API_BODY_MAX + 1;
	char *body = malloc(n + 1);

	assert_non_null(body);
	memset(body, ' ', n);
	body[n] = '\0';
	assert_int_equal(mock_ask(m, "POST", "/sandboxes", m->key[0], body), 413);
	assert_int_equal(json_integer_value(json_object_get(m->json, "code")), 413);
	assert_int_equal(m->g.api->n_calls, 0);
	assert_int_equal(m->g.api->body_bytes, 0);
	free(body);
}

static void preflights(void **state)
{
	struct mock *m = *state;

	assert_int_equal(mock_ask(m, "OPTIONS", "/sandboxes", NULL, ""), 204);
	assert_non_null(strstr(m->fields, "Access-Control-Allow-Origin: *\n"));
	assert_non_null(strstr(m->fields, "Access-Control-Allow-Methods: GET,"));
	assert_non_null(strstr(m->fields, "Access-Control-Allow-Headers: *, Authorization\n"));
}

static void templates(void **state)
{
	static const char *const wanted[] = { "templateID", "buildID",    "cpuCount",
					      "memoryMB",   "diskSizeMB", "public",
					      "aliases",    "names",      "createdAt",
					      "updatedAt",  "createdBy",  "lastSpawnedAt",
					      "spawnCount", "buildCount", "envdVersion",
					      "buildStatus" };
	struct mock *m = *state;

	assert_int_equal(mock_ask(m, "GET", "/templates?teamID=x", m->key[0], ""), 200);
	assert_int_equal(json_array_size(m->json), 1);
	for (size_t i = 0; i < COUNT(wanted); i++)
		assert_non_null(json_object_get(json_array_get(m->json, 0), wanted[i]));
	assert_int_equal(mock_ask(m, "GET", "/templates/aliases/base", m->key[0], ""), 200);
	assert_string_equal(mock_text(m, "templateID"), "tpl1");
	mock_ask(m, "GET", "/templates/aliases/other", m->key[0], "");
	mock_expect_error(m, 404);
	mock_ask(m, "GET", "/templates/aliases/base%3Av2", m->key[0], "");
	mock_expect_error(m, 404);
	assert_int_equal(mock_ask(m, "GET", "/admin/templates", NULL, ""), 200);
	assert_int_equal(json_array_size(m->json), 1);
}

/* The client goes while node is asked: nothing is left behind. */
static void a_client_that_goes(void **state)
{
	struct mock *m = *state;

	assert_int_equal(mock_ask(m, "GET", "/v2/sandboxes", m->key[0], ""), 200);
	mock_send(m, &m->http, "POST", "/sandboxes", m->key[0],
		  BYTES_LIT("{\"templateID\":\"base\"}"));
	RUN_UNTIL(m->l, m->g.api->n_calls == 1);
	http_call_cancel(&m->call);
	RUN_UNTIL(m->l, m->g.api->n_calls == 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	const struct CMUnitTest tests[] = {
		T(health_needs_nothing),      T(keys_are_wanted), T(paths_that_do_not_exist),
		T(create_has_every_member),   T(create_refuses),  T(get_says_all),
		T(a_private_one_has_a_token), T(create_refuses),  T(get_says_all),
		T(other_teams_do_not_exist),  T(ids_are_checked), T(timeouts),
		T(refreshes_only_extend),     T(kill_twice),      T(errors_of_node_have_a_status),
		T(bodies_have_a_limit),       T(preflights),      T(templates),
		T(a_client_that_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
