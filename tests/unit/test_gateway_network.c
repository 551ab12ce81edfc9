/* test_gateway_network.c - the network of a sandbox: what may be asked for, in E2B's words; another
 * one for one that runs; what an operator is told; services of keys. */
#include "tests/unit/gateway_mock.h"

#include "gateway/parse/network_request.h"

static int take(const char *text, json_t **ret, struct err *err)
{
	AUTO(json_decrefp) json_t *in = NULL;

	if (json_decode(bytes_str(text), 65536, 16, &in, err) < 0)
		fail_msg("%s", err->msg);
	return network_request_take(in, "network.", ret, err);
}

static void networks_are_read(void **state)
{
	static const struct {
		const char *name, *want;
	} rows[] = {
		{ "{}", "{}" },
		{ "{\"allowOut\":null,\"egressProxy\":null,\"dnsServers\":[],\"x\":1}", "{}" },
		{ "{\"allow_out\":[],\"deny_out\":[\"10.0.0.0/8\",\"1.1.1.1\",\"2001:db8::1\"]}",
		  "{\"allowOut\":[],\"denyOut\":[\"10.0.0.0/8\",\"1.1.1.1\",\"2001:db8::1\"]}" },
		{ "{\"allowOut\":[\"8.8.8.8\",\"0.0.0.0/0\"]}",
		  "{\"allowOut\":[\"8.8.8.8\",\"0.0.0.0/0\"]}" },
		{ "{\"allowOut\":[\"*.Example.com\",\"*\"],\"denyOut\":[\"0.0.0.0/0\"]}",
		  "{\"allowOut\":[\"*.Example.com\",\"*\"],\"denyOut\":[\"0.0.0.0/0\"]}" },
		{ "{\"rules\":{}}", "{\"rules\":{}}" },
		{ "{\"rules\":{\"A.example\":[],\"*.b.example\":[{}],\"c\":[{\"transform\":{}}]}}",
		  "{\"rules\":{\"a.example\":[],\"*.b.example\":[{}],\"c\":[{\"transform\":{}}]}"
		  "}" },
		{ "{\"rules\":{\"a\":[{\"transform\":{\"headers\":{\"Authorization\":"
		  "\"Bearer ${e2b.secrets.K}\",\"X\":\"${HOME}\"},\"y\":1},\"z\":2}]}}",
		  "{\"rules\":{\"a\":[{\"transform\":{\"headers\":{\"Authorization\":"
		  "\"Bearer ${e2b.secrets.K}\",\"X\":\"${HOME}\"}}}]}}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(65536);
		AUTO(json_decrefp) json_t *got = NULL;
		struct err err = { 0 };

		if (take(row->name, &got, &err) < 0 || json_encode(got, &out, &err) < 0)
			fail_msg("%s", err.msg);
		assert_true(bytes_eq(buf_view(&out), bytes_str(row->want)));
	}
}

static void networks_are_refused(void **state)
{
	static const struct {
		const char *name, *message;
		enum err_code code;
	} rows[] = {
		{ "{\"denyOut\":[\"1.1.1.1\",\"example.com\"]}", "invalid denied CIDR example.com",
		  ERR_INVALID },
		{ "{\"denyOut\":[\"0.0.0.0\"]}", "invalid denied CIDR 0.0.0.0", ERR_INVALID },
		{ "{\"denyOut\":[\"::/0\"]}", "invalid denied CIDR ::/0", ERR_INVALID },
		{ "{\"allowOut\":[\"0.0.0.0/8\"]}", "invalid allowed address 0.0.0.0/8",
		  ERR_INVALID },
		{ "{\"allowOut\":[\"0x7f000001\"]}", "invalid allowed address 0x7f000001",
		  ERR_INVALID },
		{ "{\"allowOut\":[\"1.1.1.1\",\"example.com\"],\"denyOut\":[\"10.0.0.0/8\"]}",
		  "When specifying allowed domains in allow out, you must include 'ALL_TRAFFIC' in "
		  "deny out to block all other traffic.",
		  ERR_INVALID },
		{ "{\"allowOut\":[7]}", "allowOut must be an array of strings", ERR_INVALID },
		{ "{\"allowOut\":{}}", NULL, ERR_INVALID },
		{ "{\"egressProxy\":{\"address\":\"a:1\"}}",
		  "Egress proxy (network.egressProxy) is not enabled for this team.", ERR_DENIED },
		{ "{\"dnsServers\":[\"1.1.1.1\"]}", NULL, ERR_INVALID },
		{ "{\"rules\":[]}", NULL, ERR_INVALID },
		{ "{\"rules\":{\"\":[]}}", "Rule domain must not be empty.", ERR_INVALID },
		{ "{\"rules\":{\"a b\":[]}}", "Rule domain \"a b\" is not a valid domain name.",
		  ERR_INVALID },
		{ "{\"rules\":{\"*\":[]}}", "Rule domain \"*\" is not a valid domain name.",
		  ERR_INVALID },
		{ "{\"rules\":{\"1.2.3.4\":[]}}",
		  "Rule domain \"1.2.3.4\" is not a valid domain name.", ERR_INVALID },
		{ "{\"rules\":{\"a.example\":[],\"A.example\":[]}}",
		  "Rule domain \"a.example\" is given twice.", ERR_INVALID },
		{ "{\"rules\":{\"a\":[{},{}]}}", "Domain \"a\" can have at most 1 transform rule.",
		  ERR_INVALID },
		{ "{\"rules\":{\"a\":{}}}", NULL, ERR_INVALID },
		{ "{\"rules\":{\"a\":[7]}}", NULL, ERR_INVALID },
		{ "{\"rules\":{\"a\":[{\"transform\":{\"headers\":{\"\":\"x\"}}}]}}",
		  "Header name in rule for domain \"a\" must not be empty.", ERR_INVALID },
		{ "{\"rules\":{\"a\":[{\"transform\":{\"headers\":{\"A:\":\"x\"}}}]}}",
		  "Header name \"A:\" in rule for domain \"a\" must contain only valid HTTP token "
		  "characters.",
		  ERR_INVALID },
		{ "{\"rules\":{\"a\":[{\"transform\":{\"headers\":{\"content-length\":\"1\"}}}]}}",
		  "Header name \"content-length\" in rule for domain \"a\" is not one that a rule "
		  "may set.",
		  ERR_INVALID },
		{ "{\"rules\":{\"a\":[{\"transform\":{\"headers\":{\"A\":\"x\\r\\nB: y\"}}}]}}",
		  "Value for header \"A\" in rule for domain \"a\" contains invalid characters.",
		  ERR_INVALID },
		{ "{\"rules\":{\"a\":[{\"transform\":{\"headers\":{\"A\":7}}}]}}", NULL,
		  ERR_INVALID },
		{ "{\"rules\":{\"a\":[{\"transform\":{\"headers\":{\"A\":\"${e2b.secrets.\"}}}]}}",
		  "Network transform header contains a malformed E2B placeholder.", ERR_INVALID },
		{ "{\"rules\":{\"a\":[{\"transform\":{\"headers\":{\"A\":"
		  "\"${e2b.identity.tokens.x}\"}}}]}}",
		  NULL, ERR_INVALID },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		json_t *got = NULL;
		struct err err = { 0 };

		assert_int_equal(take(row->name, &got, &err), -1);
		assert_int_equal(err.code, row->code);
		if (row->message)
			assert_string_equal(err.msg, row->message);
	}
}

/* A rule of a host, a header and a value as long as that. */
static void expect_too_long(int host, int name, int value, const char *message)
{
	AUTO(buf_done) struct buf text = BUF_MAX(8192);
	AUTO(json_decrefp) json_t *got = NULL;
	char xs[4096], hosts[256];
	struct err err = { 0 };
	int rc;

	memset(xs, 'x', sizeof(xs));
	memset(hosts, 'x', sizeof(hosts));
	hosts[50] = hosts[100] = '.';
	rc = buf_printf(
		&text, &err,
		"{\"rules\":{\"%.*s\":[{\"transform\":{\"headers\":{\"%.*s\":\"%.*s\"}}}]}}%c",
		host, hosts, name, xs, value, xs, 0);
	assert_int_equal(rc, 0);
	rc = take((const char *)text.ptr, &got, &err);
	assert_int_equal(rc, message ? -1 : 0);
	if (message)
		assert_non_null(strstr(err.msg, message));
}

static void lengths_have_limits(void **state)
{
	(void)state;
	expect_too_long(128, 64, 2048, NULL);
	expect_too_long(129, 1, 0, "exceeds maximum length of 128 characters.");
	expect_too_long(3, 65, 0, "exceeds maximum length of 64 characters.");
	expect_too_long(3, 1, 2049, "exceeds maximum length of 2048 characters.");
}

static json_t *many(const char *member, size_t n, json_t *(*value)(void))
{
	json_t *all = json_object();

	for (size_t i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s%zu", member, i);
		json_object_set_new(all, name, value());
	}
	return all;
}

static json_t *text_value(void)
{
	return json_string("v");
}

static void numbers_have_limits(void **state)
{
	static const struct {
		const char *name;
		size_t hosts, headers;
		const char *message;
	} rows[] = {
		{ "all", 10, 20, NULL },
		{ "hosts", 11, 1, "Network rules can have at most 10 domains." },
		{ "headers", 1, 21, "Domain \"h0\" can have at most 20 headers per rule." },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(json_decrefp) json_t *network = NULL, *got = NULL, *headers = NULL;
		json_t *rules = many("h", row->hosts, json_array);
		struct err err = { 0 };

		headers = many("X-", row->headers, text_value);
		json_array_append_new(json_object_get(rules, "h0"),
				      json_pack("{s:{s:O}}", "transform", "headers", headers));
		network = json_pack("{s:o}", "rules", rules);
		assert_int_equal(network_request_take(network, "", &got, &err),
				 row->message ? -1 : 0);
		if (row->message)
			assert_string_equal(err.msg, row->message);
	}
}

static void one_that_runs_gets_another(void **state)
{
	static const char body[] = "{\"allowOut\":[\"Example.com\"],\"denyOut\":[\"0.0.0.0/0\"],"
				   "\"allow_internet_access\":true}";
	struct mock *m = *state;
	struct mock_sandbox *b = mock_add(m, m->team[0], "{}");

	assert_int_equal(mock_ask(m, "PUT", "/sandboxes/i0000/network", m->key[0], body), 204);
	assert_int_equal(m->last.verb, NODE_NETWORK);
	assert_string_equal(m->last.team, m->team[0]);
	assert_string_equal(m->last_text,
			    "{\"allowInternetAccess\":true,\"network\":{\"allowOut\":["
			    "\"Example.com\"],\"denyOut\":[\"0.0.0.0/0\"]},\"services\":[]}");
	assert_int_equal(mock_ask(m, "PUT", "/sandboxes/i0000/network", m->key[0], "{}"), 204);
	assert_string_equal(m->last_text, "{\"network\":{},\"services\":[]}");

	m->asked = 0;
	mock_ask(m, "PUT", "/sandboxes/i0000/network", m->key[0], "");
	mock_expect_error(m, 400);
	mock_ask(m, "PUT", "/sandboxes/i0000/network", m->key[0], "{\"allowOut\":[\"a.b\"]}");
	mock_expect_error(m, 400);
	mock_ask(m, "PUT", "/sandboxes/i0000/network", m->key[0],
		 "{\"egressProxy\":{\"address\":\"a:1\"}}");
	mock_expect_error(m, 403);
	assert_string_equal(mock_text(m, "message"),
			    "Egress proxy (egressProxy) is not enabled for this team.");
	assert_int_equal(m->asked, 0);

	b->s.state = NODE_PAUSED;
	mock_ask(m, "PUT", "/sandboxes/i0000/network", m->key[0], "{}");
	mock_expect_error(m, 409);
	mock_ask(m, "PUT", "/sandboxes/i9999/network", m->key[0], "{}");
	mock_expect_error(m, 404);
}

static void creates_say_why_not(void **state)
{
	struct mock *m = *state;

	mock_ask(m, "POST", "/v2/sandboxes", m->key[0],
		 "{\"templateID\":\"base\",\"network\":{\"egressProxy\":{\"address\":\"a:1\"}}}");
	mock_expect_error(m, 403);
	mock_ask(m, "POST", "/v2/sandboxes", m->key[0],
		 "{\"templateID\":\"base\",\"network\":{\"denyOut\":[\"x\"]}}");
	mock_expect_error(m, 400);
	assert_string_equal(mock_text(m, "message"), "invalid denied CIDR x");
	assert_int_equal(m->asked, 0);
}

static void a_network_is_shown(void **state)
{
	struct mock *m = *state;
	const json_t *network;

	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0],
				  "{\"templateID\":\"base\",\"allow_internet_access\":false,"
				  "\"network\":{\"deny_out\":[\"0.0.0.0/0\"],\"rules\":{\"A\":[]},"
				  "\"allow_public_traffic\":true}}"),
			 201);
	assert_int_equal(mock_ask(m, "GET", "/sandboxes/i0000", m->key[0], ""), 200);
	assert_true(json_is_false(json_object_get(m->json, "allowInternetAccess")));
	network = json_object_get(m->json, "network");
	assert_int_equal(json_object_size(network), 3);
	assert_true(json_is_array(json_object_get(network, "denyOut")));
	assert_true(json_is_true(json_object_get(network, "allowPublicTraffic")));
	assert_non_null(json_object_get(json_object_get(network, "rules"), "a"));
}

static void an_operator_is_told(void **state)
{
	struct mock *m = *state;

	mock_add(m, m->team[0], "{}");
	m->record = "{\"allowed\":true}";
	assert_int_equal(
		mock_ask(m, "GET", "/admin/sandboxes/i0000/explain?to=a.example%3A443", NULL, ""),
		200);
	assert_true(json_is_true(json_object_get(m->json, "allowed")));
	assert_int_equal(m->last.verb, NODE_EXPLAIN);
	assert_string_equal(m->last_text, "{\"question\":\"a.example:443\"}");
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes/i0000/explain", NULL, ""), 200);
	assert_string_equal(m->last_text, "{}");
	assert_int_equal(mock_ask(m, "GET", "/admin/explain?to=b.example", NULL, ""), 200);
	assert_int_equal(m->last.verb, NODE_EXPLAIN);
	assert_string_equal(m->last.id, "");
	assert_string_equal(m->last_text, "{\"question\":\"b.example\"}");
	m->record = "[{\"x\":1}]";
	assert_int_equal(mock_ask(m, "GET", "/admin/sandboxes/i0000/egress", NULL, ""), 200);
	assert_int_equal(m->last.verb, NODE_EGRESS_LOG);
	assert_int_equal(json_array_size(m->json), 1);
	m->record = "nonsense";
	mock_ask(m, "GET", "/admin/sandboxes/i0000/egress", NULL, "");
	mock_expect_error(m, 500);
	mock_ask(m, "GET", "/admin/sandboxes/i9999/explain", NULL, "");
	mock_expect_error(m, 404);
}

static const char *warning(struct mock *m)
{
	static char text[512];
	const char *at = strstr(m->fields, "X-Hotcell-Warning: ");

	snprintf(text, sizeof(text), "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
	return at ? text + strlen("X-Hotcell-Warning: ") : "";
}

/* What is typed wrong is kept, for it may be published later; but not silently. */
static void a_service_that_nobody_published_is_named(void **state)
{
	struct mock *m = *state;
	char path[128];

	assert_int_equal(mock_ask(m, "GET", "/api-keys", m->key[0], ""), 200);
	snprintf(path, sizeof(path), "/admin/keys/%s/services",
		 json_string_value(json_object_get(json_array_get(m->json, 0), "id")));
	m->record = "{\"published\":[\"db\",\"cache\"]}";
	mock_ask(m, "PATCH", path, NULL, "{\"services\":[\"db\",\"nosuch\"]}");
	assert_int_equal(m->status, 200);
	assert_string_equal(warning(m), "no service nosuch is published: services in "
					"/etc/hotcell/egress.conf");
	assert_int_equal(json_array_size(json_object_get(m->json, "services")), 2);
	mock_ask(m, "PATCH", path, NULL, "{\"services\":[\"cache\"]}");
	assert_string_equal(warning(m), "");
	m->refuse = ERR_UNAVAILABLE; /* nobody knows: it is set all the same */
	assert_int_equal(mock_ask(m, "PATCH", path, NULL, "{\"services\":[\"any\"]}"), 200);
	assert_string_equal(warning(m), "");
}

/* E2B's server ignores what it does not know, and SDKs to come may send more. */
static void what_a_create_cannot_use_is_named(void **state)
{
	struct mock *m = *state;

	mock_ask(m, "POST", "/v2/sandboxes", m->key[0],
		 "{\"templateID\":\"base\",\"time_out\":9,\"x\\u00e9\\n\":1,\"auto_pause\":true,"
		 "\"volumeMounts\":[],\"nothing\":null}");
	assert_int_equal(m->status, 201);
	assert_string_equal(warning(m), "ignored, for nobody knows it: time_out, x???");
	assert_int_equal(mock_ask(m, "POST", "/sandboxes", m->key[0],
				  "{\"templateID\":\"base\",\"allow_internet_access\":true,"
				  "\"mcp\":{},\"iam\":{},\"autoResume\":{\"enabled\":false}}"),
			 201);
	assert_string_equal(warning(m), "");
	mock_ask(m, "POST", "/sandboxes", m->key[0], "{\"templateID\":\"base\",\"cpuCount\":8}");
	mock_expect_error(m, 400);
	assert_non_null(strstr(mock_text(m, "message"), "cpuCount: a sandbox has the size of its"));
	mock_ask(m, "POST", "/sandboxes", m->key[0], "{\"templateID\":\"base\",\"memory_mb\":8}");
	mock_expect_error(m, 400);
}

static void keys_have_services(void **state)
{
	static const char body[] = "{\"templateID\":\"base\"}";
	struct mock *m = *state;
	char path[128];

	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0], body), 201);
	assert_null(strstr(m->last_text, "services"));
	snprintf(path, sizeof(path), "/admin/keys/%s/services", m->last.key_id);
	assert_int_equal(mock_ask(m, "PATCH", path, NULL, "{\"services\":[\"DB\",\"cache\"]}"),
			 200);
	assert_int_equal(json_array_size(json_object_get(m->json, "services")), 2);
	/* known to the very next create, and to a change */
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0], body), 201);
	assert_non_null(strstr(m->last_text, "\"services\":[\"db\",\"cache\"]"));
	assert_int_equal(mock_ask(m, "PUT", "/sandboxes/i0000/network", m->key[0], "{}"), 204);
	assert_string_equal(m->last_text, "{\"network\":{},\"services\":[\"db\",\"cache\"]}");
	assert_int_equal(mock_ask(m, "PATCH", path, NULL, "{}"), 200); /* as they were */
	assert_int_equal(json_array_size(json_object_get(m->json, "services")), 2);

	mock_ask(m, "PATCH", path, NULL, "{\"services\":[\"a.b\"]}");
	mock_expect_error(m, 400);
	mock_ask(m, "PATCH", path, NULL, "{\"services\":[\"a b\"]}");
	mock_expect_error(m, 400);
	mock_ask(m, "PATCH", "/admin/keys/nobody/services", NULL, "{\"services\":[]}");
	mock_expect_error(m, 404);
	assert_int_equal(mock_ask(m, "PATCH", path, NULL, "{\"services\":[]}"), 200);
	assert_int_equal(mock_ask(m, "POST", "/v2/sandboxes", m->key[0], body), 201);
	assert_null(strstr(m->last_text, "services"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, mock_set_up, mock_tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(networks_are_read),
		cmocka_unit_test(networks_are_refused),
		cmocka_unit_test(lengths_have_limits),
		cmocka_unit_test(numbers_have_limits),
		T(one_that_runs_gets_another),
		T(creates_say_why_not),
		T(a_network_is_shown),
		T(an_operator_is_told),
		T(keys_have_services),
		T(a_service_that_nobody_published_is_named),
		T(what_a_create_cannot_use_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
