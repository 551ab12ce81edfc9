/* test_node_network.c - from what was said about a sandbox to the rules of its network. */
#include "tests/unit/check.h"

#include "node/network/network_secrets.h"
#include "node/network/network_text.h"

enum { TEXT_MAX = 48 * 1024 };

static json_t *read_json(struct bytes text)
{
	json_t *v = NULL;
	struct err err;

	if (json_decode(text, NETWORK_RULES_MAX, 32, &v, &err) < 0)
		fail_msg("%s", err.msg);
	return v;
}

static void assert_json(struct bytes got, const char *expected)
{
	AUTO(json_decrefp) json_t *a = read_json(got);
	AUTO(json_decrefp) json_t *b = read_json(bytes_str(expected));

	if (!json_equal(a, b))
		fail_msg("%.*s is not %s", (int)got.len, (const char *)got.ptr, expected);
}

static void rules_are_what_egress_needs_and_nothing_else(void **state)
{
	static const struct {
		const char *name, *text, *known, *expected;
	} rows[] = {
		{ "nothing was said", NULL, NULL, "{\"packages\":[\"p.example\"],\"network\":{}}" },
		{ "all of it",
		  "{\"metadata\":{\"a\":\"b\"},\"services\":[\"db\"],\"allowInternetAccess\":false,"
		  "\"network\":{\"allowOut\":[\"a.example\"],\"denyOut\":[\"0.0.0.0/0\"],"
		  "\"maskRequestHost\":\"x\"}}",
		  "[[\"a.example\",\"1.2.3.4\"]]",
		  "{\"packages\":[\"p.example\"],\"services\":[\"db\"],\"allowInternetAccess\":"
		  "false,"
		  "\"network\":{\"allowOut\":[\"a.example\"],\"denyOut\":[\"0.0.0.0/0\"]},"
		  "\"known\":[[\"a.example\",\"1.2.3.4\"]]}" },
		{ "of headers the hosts alone",
		  "{\"sealed\":{\"k\":\"QUJD\"},\"network\":{\"rules\":{\"a.example\":[{"
		  "\"transform\":"
		  "{\"headers\":{\"authorization\":\"hidden\"}}}],\"*.b\":null}}}",
		  NULL,
		  "{\"packages\":[\"p.example\"],\"network\":{\"rules\":{\"a.example\":[],\"*.b\":["
		  "]}}"
		  "}" },
		{ "its template shows what is refused",
		  "{\"refusalPages\":true,\"guardedPorts\":\"1\"}", NULL,
		  "{\"packages\":[\"p.example\"],\"refusalPages\":true,\"network\":{}}" },
		{ "null is nothing",
		  "{\"network\":null,\"services\":null,\"allowInternetAccess\":null}", NULL,
		  "{\"packages\":[\"p.example\"],\"network\":{}}" },
		{ "what is wrong is left to egress to refuse",
		  "{\"network\":{\"allowOut\":7,\"rules\":[]}}", NULL,
		  "{\"packages\":[\"p.example\"],\"network\":{\"allowOut\":7}}" },
	};
	AUTO(json_decrefp) json_t *packages = json_pack("[s]", "p.example");

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(NETWORK_RULES_MAX);
		const struct network_from from = { row->text, packages, row->known };
		struct err err;

		if (network_text_rules(&from, &out, &err) < 0)
			fail_msg("%s", err.msg);
		assert_json(buf_view(&out), row->expected);
		assert_null(memmem(out.ptr, out.len, "hidden", 6));
	}
}

static void rules_of_nonsense_are_refused(void **state)
{
	static const struct network_from rows[] = {
		{ "[]", NULL, NULL },
		{ "{", NULL, NULL },
		{ "{}", NULL, "[" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		AUTO(buf_done) struct buf out = BUF_MAX(NETWORK_RULES_MAX);
		struct err err;

		assert_int_equal(network_text_rules(&rows[i], &out, &err), -1);
	}
}

static void a_put_clears_what_it_does_not_say(void **state)
{
	static const struct {
		const char *name, *text, *put, *expected;
	} rows[] = {
		{ "where there was nothing", NULL, "{\"network\":{\"allowOut\":[\"a\"]}}",
		  "{\"network\":{\"allowOut\":[\"a\"]}}" },
		{ "all is cleared",
		  "{\"metadata\":{},\"allowInternetAccess\":false,\"sealed\":{\"k\":\"QQ==\"},"
		  "\"network\":{\"allowOut\":[\"a\"],\"denyOut\":[\"b\"],\"rules\":{\"c\":[]}}}",
		  "{}", "{\"metadata\":{},\"network\":{}}" },
		{ "other purposes stay",
		  "{\"services\":[\"db\"],\"network\":{\"allowOut\":[\"a\"],\"maskRequestHost\":"
		  "\"m\","
		  "\"allowPublicTraffic\":false}}",
		  "{\"allowInternetAccess\":true,\"network\":{\"denyOut\":[\"b\"]}}",
		  "{\"services\":[\"db\"],\"allowInternetAccess\":true,\"network\":{\"denyOut\":["
		  "\"b\"]"
		  ",\"maskRequestHost\":\"m\",\"allowPublicTraffic\":false}}" },
		{ "how it sees refusals stays", "{\"refusalPages\":true}",
		  "{\"refusalPages\":false}", "{\"refusalPages\":true,\"network\":{}}" },
		{ "what is said counts", "{\"services\":[\"db\"],\"sealed\":{\"old\":\"QQ==\"}}",
		  "{\"services\":[],\"sealed\":{\"new\":\"QQ==\"},\"network\":{\"rules\":{\"c\":[]}"
		  "}}",
		  "{\"services\":[],\"sealed\":{\"new\":\"QQ==\"},\"network\":{\"rules\":{\"c\":[]}"
		  "}}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(auto_free) char *got = NULL;
		struct err err;

		if (network_text_put(row->text, bytes_str(row->put), TEXT_MAX, &got, &err) < 0)
			fail_msg("%s", err.msg);
		assert_json(bytes_str(got), row->expected);
	}
}

static void a_put_of_nonsense_changes_nothing(void **state)
{
	static const char *const puts[] = { "[]", "{", "{\"network\":[]}", "7" };

	(void)state;
	for (size_t i = 0; i < COUNT(puts); i++) {
		char *got = NULL;
		struct err err;

		assert_int_equal(network_text_put("{}", bytes_str(puts[i]), TEXT_MAX, &got, &err),
				 -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_null(got);
	}
}

/* What came as several pieces may not become more together than a text may be. */
static void a_put_is_bounded(void **state)
{
	AUTO(auto_free) char *got = NULL;
	char text[512], put[512];
	struct err err;

	(void)state;
	snprintf(text, sizeof(text), "{\"metadata\":\"%0300d\"}", 0);
	snprintf(put, sizeof(put), "{\"network\":{\"allowOut\":[\"%0300d\"]}}", 0);
	assert_int_equal(network_text_put(text, bytes_str(put), 512, &got, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_null(got);
}

static void the_injector_is_told_of_headers_and_secrets_alone(void **state)
{
	static const struct {
		const char *name, *text, *expected; /* NULL: nothing */
	} rows[] = {
		{ "nothing was said", NULL, NULL },
		{ "no rules", "{\"sealed\":{\"k\":\"QQ==\"},\"network\":{\"allowOut\":[\"a\"]}}",
		  NULL },
		{ "rules of nobody", "{\"network\":{\"rules\":{}}}", NULL },
		{ "rules that are none", "{\"network\":{\"rules\":[1]}}", NULL },
		{ "rules",
		  "{\"metadata\":{},\"sealed\":{\"k\":\"QQ==\"},\"network\":{\"rules\":{\"a\":[{"
		  "\"x\":1}]},"
		  "\"allowOut\":[\"a\"]}}",
		  "{\"rules\":{\"a\":[{\"x\":1}]},\"sealed\":{\"k\":\"QQ==\"}}" },
		{ "without a secret", "{\"network\":{\"rules\":{\"a\":[]}}}",
		  "{\"rules\":{\"a\":[]}}" },
		{ "pages that are none", "{\"refusalPages\":\"yes\"}", NULL },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(NETWORK_RULES_MAX);
		struct err err;

		if (network_text_opened(row->text, true, &out, &err) < 0)
			fail_msg("%s", err.msg);
		if (row->expected)
			assert_json(buf_view(&out), row->expected);
		else
			assert_int_equal(out.len, 0);
	}
}

static void the_injector_is_told_of_pages_if_they_count(void **state)
{
	static const struct {
		const char *name, *text, *with, *without; /* NULL: nothing */
	} rows[] = {
		{ "alone", "{\"refusalPages\":true}", "{\"rules\":{},\"refusalPages\":true}",
		  NULL },
		{ "with rules", "{\"refusalPages\":true,\"network\":{\"rules\":{\"a\":[]}}}",
		  "{\"rules\":{\"a\":[]},\"refusalPages\":true}", "{\"rules\":{\"a\":[]}}" },
	};

	(void)state;
	FOR_ROWS(row, rows)
		for (int pages = 0; pages < 2; pages++) {
			AUTO(buf_done) struct buf out = BUF_MAX(NETWORK_RULES_MAX);
			const char *expected = pages ? row->with : row->without;
			struct err err;

			assert_int_equal(network_text_opened(row->text, pages, &out, &err), 0);
			if (expected)
				assert_json(buf_view(&out), expected);
			else
				assert_int_equal(out.len, 0);
		}
}

#define NAMES_K                                                                       \
	"\"network\":{\"rules\":{\"a.test\":[{\"transform\":{\"headers\":{\"X\":\"a " \
	"${e2b.secrets.K}\"}}}]}}"

static void a_secret_is_replaced_where_it_is_named(void **state)
{
	static const struct {
		const char *name, *text, *sealed, *expected; /* NULL: it is gone; as it was */
	} rows[] = {
		{ "no text", NULL, "bmV3", NULL },
		{ "no secrets", "{\"metadata\":{\"sealed\":\"no\"}}", "bmV3", NULL },
		{ "another one", "{\"sealed\":{\"other\":\"QQ==\"}}", "bmV3", NULL },
		{ "the same value", "{\"sealed\":{\"k\":\"bmV3\"}}", "bmV3", NULL },
		{ "another value", "{" NAMES_K ",\"sealed\":{\"k\":\"QQ==\",\"other\":\"QQ==\"}}",
		  "bmV3", "{" NAMES_K ",\"sealed\":{\"k\":\"bmV3\",\"other\":\"QQ==\"}}" },
		{ "the first value", "{" NAMES_K ",\"sealed\":{}}", "bmV3",
		  "{" NAMES_K ",\"sealed\":{\"k\":\"bmV3\"}}" },
		{ "not an object", "{" NAMES_K ",\"sealed\":[]}", "bmV3", NULL },
		{ "none any more", "{\"sealed\":{\"k\":\"QQ==\",\"other\":\"QQ==\"}}", NULL,
		  "{\"sealed\":{\"other\":\"QQ==\"}}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(json_decrefp) json_t *sealed = row->sealed ? json_string(row->sealed) : NULL;
		AUTO(auto_free) char *got = NULL;
		AUTO(auto_free) char *text = row->text ? strdup(row->text) : NULL;
		const struct secret_change change = { .name = "k", .sealed = sealed };
		struct err err;

		if (network_text_secret(row->text, "k", sealed, &got, &err) < 0)
			fail_msg("%s", err.msg);
		if (row->expected)
			assert_json(bytes_str(got), row->expected);
		else
			assert_null(got);
		assert_int_equal(secret_change_text(&change, &text), !!row->expected);
		if (text)
			assert_json(bytes_str(text), row->expected ? row->expected : row->text);
		assert_false(secret_change_text(&change, &text)); /* it has it */
	}
}

static void a_secret_that_is_missing_is_named(void **state)
{
	static const struct {
		const char *name, *text, *missing;
	} rows[] = {
		{ "no text", NULL, "" },
		{ "no rules", "{\"sealed\":{}}", "" },
		{ "no secrets were looked for", "{" NAMES_K "}", "" },
		{ "it is there", "{" NAMES_K ",\"sealed\":{\"k\":\"QQ==\"}}", "" },
		{ "another one is", "{" NAMES_K ",\"sealed\":{\"other\":\"QQ==\"}}", "k" },
		{ "two",
		  "{\"network\":{\"rules\":{\"a.test\":[{\"transform\":{\"headers\":{\"X\":"
		  "\"${e2b.secrets.a}${e2b.secrets.b}\"}}}]}},\"sealed\":{}}",
		  "a, b" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char got[16], cut[3];

		network_text_missing(row->text, got, sizeof(got));
		assert_string_equal(got, row->missing);
		network_text_missing(row->text, cut, sizeof(cut));
		assert_int_equal(strncmp(cut, row->missing, 2), 0);
	}
}

static void the_newest_names_are_kept(void **state)
{
	AUTO(buf_done) struct buf said = BUF_MAX(NETWORK_RULES_MAX);
	AUTO(auto_free) char *known = NULL;
	AUTO(json_decrefp) json_t *kept = NULL;
	struct err err;

	(void)state;
	assert_int_equal(buf_printf(&said, &err, "["), 0);
	for (int i = 0; i < NETWORK_KNOWN_MAX + 5; i++)
		assert_int_equal(
			buf_printf(&said, &err, "%s[\"n%d.example\",\"1.2.3.4\"]", i ? "," : "", i),
			0);
	assert_int_equal(buf_printf(&said, &err, "]"), 0);
	assert_int_equal(network_text_known(buf_view(&said), &known, &err), 0);
	kept = read_json(bytes_str(known));
	assert_int_equal(json_array_size(kept), NETWORK_KNOWN_MAX);
	assert_string_equal(json_string_value(json_array_get(json_array_get(kept, 0), 0)),
			    "n5.example");
}

static void names_of_another_form_are_not_kept(void **state)
{
	static const char *const said[] = { "", "[", "[1]", "[[\"a\"]]", "[[\"a\",7]]" };
	char *known = NULL;
	struct err err;

	(void)state;
	assert_int_equal(network_text_known(BYTES_LIT("[]"), &known, &err), 0);
	assert_null(known);
	for (size_t i = 0; i < COUNT(said); i++) {
		assert_int_equal(network_text_known(bytes_str(said[i]), &known, &err), -1);
		assert_null(known);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_what_egress_needs_and_nothing_else),
		cmocka_unit_test(rules_of_nonsense_are_refused),
		cmocka_unit_test(a_put_clears_what_it_does_not_say),
		cmocka_unit_test(a_put_of_nonsense_changes_nothing),
		cmocka_unit_test(a_put_is_bounded),
		cmocka_unit_test(the_injector_is_told_of_headers_and_secrets_alone),
		cmocka_unit_test(the_injector_is_told_of_pages_if_they_count),
		cmocka_unit_test(a_secret_is_replaced_where_it_is_named),
		cmocka_unit_test(a_secret_that_is_missing_is_named),
		cmocka_unit_test(the_newest_names_are_kept),
		cmocka_unit_test(names_of_another_form_are_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
