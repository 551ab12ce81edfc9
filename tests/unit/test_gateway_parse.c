/* test_gateway_parse.c - the body of a create, template references, list tokens, domains, the key
 * cache. */
#include "tests/unit/check.h"

#include "gateway/parse/create_request.h"
#include "gateway/api/key_cache.h"
#include "gateway/parse/list_query.h"
#include "gateway/parse/sandbox_domain.h"
#include "gateway/parse/template_ref.h"

static void creates_are_read(void **state)
{
	static const struct {
		const char *name;
		enum api_version version;
		uint32_t timeout_s;
		bool secure;
		const char *text;
	} rows[] = {
		{ "{\"templateID\":\"base\"}", API_V1, 15, false,
		  "{\"metadata\":{},\"envVars\":{}}" },
		{ "{\"templateID\":\"base\",\"secure\":false}", API_V2, 300, true,
		  "{\"metadata\":{},\"envVars\":{}}" },
		{ "{\"templateID\":\"base\",\"secure\":true,\"timeout\":1}", API_V1, 1, true,
		  "{\"metadata\":{},\"envVars\":{}}" },
		{ "{\"templateID\":\"base\",\"timeout\":86400,\"metadata\":null,\"mcp\":null,"
		  "\"volumeMounts\":[],\"iam\":{\"tokens\":{}},\"autoPause\":false,"
		  "\"autoResume\":{\"enabled\":false},\"network\":null}",
		  API_V2, 86400, true, "{\"metadata\":{},\"envVars\":{}}" },
		{ "{\"templateID\":\"base\",\"envVars\":{\"A\":\"1\"},\"metadata\":{\"\":\"=\"},"
		  "\"allow_internet_access\":true,\"network\":{\"allow_out\":[\"x\"],\"denyOut\":["
		  "\"0.0.0.0/0\"],\"more\":1},\"mcp\":{"
		  "\"a\":{}}}",
		  API_V2, 300, true,
		  "{\"metadata\":{\"\":\"=\"},\"envVars\":{\"A\":\"1\"},\"allowInternetAccess\":"
		  "true,"
		  "\"network\":{\"allowOut\":[\"x\"],\"denyOut\":[\"0.0.0.0/"
		  "0\"]},\"mcp\":{\"a\":{}}}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf text = { 0 };
		struct create_request r;
		struct err err = { 0 };

		if (create_request_parse(bytes_str(row->name), row->version, &r, &err) < 0)
			fail_msg("%s", err.msg);
		assert_string_equal(r.template.name, "base");
		assert_int_equal(r.timeout_s, row->timeout_s);
		assert_int_equal(r.secure, row->secure);
		if (create_request_text(&r, &text, &err) < 0)
			fail_msg("%s", err.msg);
		assert_true(bytes_eq(buf_view(&text), bytes_str(row->text)));
		create_request_done(&r);
	}
}

static void creates_are_refused(void **state)
{
	static const struct {
		const char *name, *message;
	} rows[] = {
		{ "\"timeout\":-5", "Timeout must be greater than 0" },
		{ "\"timeout\":\"soon\"", NULL },
		{ "\"timeout\":1.5", NULL },
		{ "\"metadata\":{\"a\":1}", "metadata must have strings as values" },
		{ "\"metadata\":[]", NULL },
		{ "\"envVars\":{\"a=b\":\"1\"}",
		  "envVars: a name must not be empty or contain '='" },
		{ "\"envVars\":{\"\":\"1\"}", "envVars: a name must not be empty or contain '='" },
		{ "\"envVars\":{\"a\":null}", "envVars must have strings as values" },
		{ "\"secure\":1", NULL },
		{ "\"network\":7", NULL },
		{ "\"network\":{\"allowPublicTraffic\":false}",
		  "You cannot create a sandbox without public access unless you enable secure "
		  "envd access via 'secure' flag." },
		{ "\"network\":{\"allowPublicTraffic\":0}", NULL },
		{ "\"network\":{\"maskRequestHost\":\"a b\"}",
		  "mask request host is not valid: a b" },
		{ "\"network\":{\"httpsPorts\":[49983]}",
		  "network: httpsPorts must not have port 49983" },
		{ "\"autoPauseMemory\":false", "autoPauseMemory = false needs autoPause" },
		{ "\"autoPause\":true,\"autoPauseMemory\":false,\"autoResume\":{\"enabled\":true}",
		  "autoResume needs memory: autoPauseMemory must not be false" },
		{ "\"autoPause\":1", NULL },
		{ "\"autoPauseMemory\":\"yes\"", NULL },
		{ "\"autoResume\":true", NULL },
		{ "\"autoResume\":{\"enabled\":\"yes\"}", NULL },
		{ "\"volumeMounts\":[{\"name\":\"v\",\"path\":\"/v\"}]",
		  "volumeMounts is not supported yet" },
		{ "\"iam\":{\"tokens\":{\"t\":{}}}", "iam is not supported yet" },
		{ "\"mcp\":1", NULL },
		{ "\"templateID\":\"twice\"", NULL },
		{ "\"metadata\":{\"a\":\"\\u0000\"}", NULL },
		{ "\"mcp\":{\"a\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}", NULL },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char body[512];
		struct create_request r;
		struct err err = { 0 };

		snprintf(body, sizeof(body), "{\"templateID\":\"base\",%s}", row->name);
		assert_int_equal(create_request_parse(bytes_str(body), API_V1, &r, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		if (row->message)
			assert_string_equal(err.msg, row->message);
	}
}

static void creates_say_how_they_end(void **state)
{
	static const struct {
		const char *name;
		bool pause, memory, resume;
	} rows[] = {
		{ "", false, true, false },
		{ ",\"autoPause\":true", true, true, false },
		{ ",\"autoPause\":true,\"autoPauseMemory\":false", true, false, false },
		{ ",\"autoPause\":true,\"autoResume\":{\"enabled\":true}", true, true, true },
		{ ",\"autoResume\":{\"enabled\":true}", false, true, true },
		{ ",\"autoPause\":null,\"autoPauseMemory\":null,\"autoResume\":{}", false, true,
		  false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct create_request r;
		char body[512];
		struct err err = { 0 };

		snprintf(body, sizeof(body), "{\"templateID\":\"base\"%s}", row->name);
		if (create_request_parse(bytes_str(body), API_V2, &r, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(r.auto_pause, row->pause);
		assert_int_equal(r.pause_memory, row->memory);
		assert_int_equal(r.auto_resume, row->resume);
		create_request_done(&r);
	}
}

/* Whether it is too long is node's to say, also when the number does not fit. */
static void long_timeouts_are_told(void **state)
{
	struct err err = { 0 };
	uint32_t seconds;

	(void)state;
	assert_int_equal(timeout_check(NODE_TIMEOUT_MAX_S, 1, &seconds, &err), 0);
	assert_int_equal(seconds, NODE_TIMEOUT_MAX_S);
	assert_int_equal(timeout_check(INT64_MAX, 1, &seconds, &err), 0);
	assert_int_equal(seconds, NODE_TIMEOUT_MAX_S + 1);
	assert_int_equal(timeout_check(0, 1, &seconds, &err), -1);
	assert_int_equal(timeout_check(INT64_MIN, 0, &seconds, &err), -1);
}

static void creates_have_a_size(void **state)
{
	AUTO(buf_done) struct buf body = BUF_MAX(CREATE_BODY_MAX), text = { 0 };
	struct create_request r;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(buf_printf(&body, &err,
				    "{\"templateID\":\"base\",\"metadata\":{\"a\":\"%*s\"}}",
				    NODE_TEXT_MAX, "x"),
			 0);
	assert_int_equal(create_request_parse(buf_view(&body), API_V1, &r, &err), 0);
	assert_int_equal(create_request_text(&r, &text, &err), -1);
	create_request_done(&r);
	assert_string_equal(err.msg,
			    "metadata, envVars, network and mcp are larger than 48 KiB together");
	assert_int_equal(err.code, ERR_INVALID);
}

static void template_references(void **state)
{
	static const struct {
		const char *name, *want, *tag;
		bool namespace, ok;
	} rows[] = {
		{ "base", "base", "", false, true },
		{ "  Base ", "base", "", false, true },
		{ "a_b-c:v1.2", "a_b-c", "v1.2", false, true },
		{ "team/name:tag", "name", "tag", true, true },
		{ "", NULL, NULL, false, false },
		{ ":x", NULL, NULL, false, false },
		{ "a:", NULL, NULL, false, false },
		{ "/a", NULL, NULL, false, false },
		{ "a/b/c", NULL, NULL, false, false },
		{ "a:b:c", NULL, NULL, false, false },
		{ "a.b", NULL, NULL, false, false },
		{ "\xc3\xa4", NULL, NULL, false, false },
		{ "0123456789012345678901234567890123456789012345678901234567890123", NULL, NULL,
		  false, false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct template_ref ref;
		struct err err = { 0 };

		assert_int_equal(template_ref_parse(bytes_str(row->name), &ref, &err),
				 row->ok ? 0 : -1);
		if (!row->ok)
			continue;
		assert_string_equal(ref.name, row->want);
		assert_string_equal(ref.tag, row->tag);
		assert_int_equal(ref.has_namespace, row->namespace);
	}
}

static void tokens_come_back(void **state)
{
	const struct node_sandbox s = { .id = "a1b2", .started_ns = 1788614055678901234ull };
	struct node_sandbox other = s;

	(void)state;
	for (int ascending = 0; ascending < 2; ascending++) {
		AUTO(buf_done) struct buf query = BUF_MAX(1024);
		struct list_query q;
		struct err err = { 0 };

		assert_int_equal(
			buf_printf(&query, &err, "order=%s&nextToken=", ascending ? "asc" : "desc"),
			0);
		assert_int_equal(list_token_put(&query, &s, ascending, &err), 0);
		assert_null(memchr(query.ptr, '+', query.len));
		assert_null(memchr(query.ptr, '/', query.len));
		assert_int_equal(list_query_parse(buf_view(&query), 100, &q, &err), 0);
		assert_true(q.has_cursor && q.cursor_ns == s.started_ns);
		assert_string_equal(q.cursor_id, "a1b2");
		assert_false(list_query_follows(&q, &s));
		other.started_ns = s.started_ns + 1;
		assert_int_equal(list_query_follows(&q, &other), ascending);
		other.started_ns = s.started_ns - 1;
		assert_int_equal(list_query_follows(&q, &other), !ascending);
		list_query_done(&q);
	}
}

static void the_cache_forgets(void **state)
{
	struct key_cache *c = calloc(1, sizeof(*c));
	struct store_team team = { .id = "t1" };
	const struct store_key key = { .id = "k1", .family = "k0", .limits = { .sandboxes = 3 } };
	uint8_t hash[SHA256_SIZE] = { 1, 2, 3 };
	const struct key_entry *e;

	(void)state;
	assert_non_null(c);
	assert_null(key_cache_find(c, hash));
	key_cache_put(c, hash, &key, &team, key_cache_count(c), 1000);
	e = key_cache_find(c, hash);
	assert_non_null(e);
	assert_int_equal(e->limits.sandboxes, 3);
	assert_true(key_entry_fresh(e, 1000 + KEY_CACHE_MS - 1));
	assert_false(key_entry_fresh(e, 1000 + KEY_CACHE_MS));
	assert_string_equal(e->key_id, "k1");
	assert_string_equal(e->family, "k0");
	key_cache_drop_team(c, "t2");
	assert_non_null(key_cache_find(c, hash));
	key_cache_drop_team(c, "t1");
	assert_null(key_cache_find(c, hash));
	/* one bucket too full: the oldest goes */
	for (uint8_t i = 0; i <= KEY_CACHE_WAYS; i++) {
		hash[2] = i;
		key_cache_put(c, hash, &key, &team, key_cache_count(c), 1000 + i);
	}
	assert_non_null(key_cache_find(c, hash));
	hash[2] = 0;
	assert_null(key_cache_find(c, hash));
	free(c);
}

/* One of them is a gateway that changes a key while the other asks for it. */
static void the_cache_hears_of_other_gateways(void **state)
{
	static _Atomic uint64_t counts[1 + KEY_CACHE_COUNTS];
	struct key_cache *one = calloc(1, sizeof(*one)), *other = calloc(1, sizeof(*other));
	const struct store_team team = { .id = "t1" };
	const struct store_key key = { .id = "k1" };
	const uint8_t hash[SHA256_SIZE] = { 1 };
	uint64_t count;

	(void)state;
	assert_true(one && other);
	one->shared = other->shared = counts;
	key_cache_put(one, hash, &key, &team, key_cache_count(one), 1000);
	assert_non_null(key_cache_find(one, hash));
	key_cache_drop_team(other, "t1");
	assert_null(key_cache_find(one, hash));

	count = key_cache_count(one); /* the store is asked ... */
	key_cache_drop_team(other, "t1");
	assert_string_equal(key_cache_put(one, hash, &key, &team, count, 1000)->key_id, "k1");
	assert_null(key_cache_find(one, hash)); /* ... and what it said is not kept */
	key_cache_put(one, hash, &key, &team, key_cache_count(one), 1000);
	assert_non_null(key_cache_find(one, hash));
	key_cache_drop(one, hash);
	assert_null(key_cache_find(one, hash));
	free(one);
	free(other);
}

static void a_client_is_told_a_domain_that_is_nobody_elses(void **state)
{
	static const struct {
		const char *name, *domain, *host, *told;
	} rows[] = {
		{ "set", "box.test:8443", "127.0.0.1:3000", "box.test:8443" },
		{ "set, no host", "box.test", "", "box.test" },
		{ "by E2B_DOMAIN", "", "api.Hotcell.LAN", "hotcell.lan" },
		{ "by E2B_DOMAIN with a port", "", "api.hotcell.localhost:8443",
		  "hotcell.localhost:8443" },
		{ "by another name", "", "gw.corp.example:8080", "gw.corp.example:8080" },
		{ "by a short name", "", "gateway:3000", "gateway:3000" },
		{ "a dot at the end", "", "api.box.test.", "box.test" },
		{ "loopback", "", "127.0.0.1:3000", "localhost:3000" },
		{ "loopback, IPv6", "", "[::1]:3000", "localhost:3000" },
		{ "localhost", "", "localhost", "localhost" },
		{ "an address", "", "192.168.1.5:3000", SANDBOX_DOMAIN_NONE },
		{ "an address, IPv6", "", "[fd00::1]:3000", SANDBOX_DOMAIN_NONE },
		{ "a number", "", "2130706433", SANDBOX_DOMAIN_NONE },
		{ "nothing", "", "", SANDBOX_DOMAIN_NONE },
		{ "rubbish", "", "a b", SANDBOX_DOMAIN_NONE },
		{ "no name", "", "a..b", SANDBOX_DOMAIN_NONE },
		{ "api alone", "", "api", "api" },
		{ "api and a dot", "", "api.", "api" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char told[SANDBOX_DOMAIN_SIZE];

		sandbox_domain(row->domain, bytes_str(row->host), told);
		assert_string_equal(told, row->told);
	}
}

static void the_domain_of_a_configuration_is_a_name_and_perhaps_a_port(void **state)
{
	static const struct {
		const char *name, *normal; /* NULL: refused */
	} rows[] = {
		{ "", "" },
		{ "Box.Test.", "box.test" },
		{ "box.test:8443", "box.test:8443" },
		{ "localhost:3000", "localhost:3000" },
		{ "https://box.test", NULL },
		{ "*.box.test", NULL },
		{ ".box.test", NULL },
		{ "box.test:", NULL },
		{ "10.0.0.1", NULL },
		{ "box.test/", NULL },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char normal[SANDBOX_DOMAIN_SIZE];
		struct err err = { 0 };

		assert_int_equal(sandbox_domain_setting(row->name, normal, &err),
				 row->normal ? 0 : -1);
		if (row->normal)
			assert_string_equal(normal, row->normal);
		else
			assert_non_null(strstr(err.msg, "NAME:PORT"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_is_told_a_domain_that_is_nobody_elses),
		cmocka_unit_test(the_domain_of_a_configuration_is_a_name_and_perhaps_a_port),
		cmocka_unit_test(creates_are_read),
		cmocka_unit_test(creates_are_refused),
		cmocka_unit_test(creates_say_how_they_end),
		cmocka_unit_test(long_timeouts_are_told),
		cmocka_unit_test(creates_have_a_size),
		cmocka_unit_test(template_references),
		cmocka_unit_test(tokens_come_back),
		cmocka_unit_test(the_cache_forgets),
		cmocka_unit_test(the_cache_hears_of_other_gateways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
