/* test_injector_rules.c - from a sandbox's rules and sealed secrets to headers, or to a reason. */
#include "tests/unit/check.h"

#include "injector/keys.h"
#include "injector/rules.h"
#include "injector/worker/leaves.h"
#include "injector/worker/rule.h"

#define HEADERS(text) "[{\"transform\":{\"headers\":{" text "}}}]"

struct world {
	struct seal_key *key;
	char public[SEAL_KEY_TEXT + 1];
	json_t *filled;
	struct rules rules;
};

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;

	assert_int_equal(seal_key_new(&w->key, &err), 0);
	assert_int_equal(seal_key_public(w->key, w->public, &err), 0);
	*state = w;
	return 0;
}

static void forget(struct world *w)
{
	rules_done(&w->rules);
	json_decref(TAKE(w->filled));
}

static int tear_down(void **state)
{
	struct world *w = *state;

	forget(w);
	seal_key_free(w->key);
	free(w);
	return 0;
}

/* `value` sealed under `label`; `rules` is JSON. */
static void fill(struct world *w, const char *rules, const char *label, const char *value)
{
	AUTO(buf_done) struct buf sealed = BUF_MAX(SEAL_TEXT_MAX), text = BUF_MAX(RULES_TEXT_MAX);
	struct err err = { 0 };

	forget(w);
	assert_int_equal(
		seal(bytes_str(w->public), bytes_str(label), bytes_str(value), &sealed, &err), 0);
	assert_int_equal(buf_printf(&text, &err, "{\"rules\":%s,\"sealed\":{\"openai\":\"%.*s\"}}",
				    rules, (int)sealed.len, (const char *)sealed.ptr),
			 0);
	if (rules_fill(buf_view(&text), "team1", w->key, &w->filled, &err) < 0 ||
	    rules_read(json_object_get(w->filled, "rules"), &w->rules, &err) < 0)
		fail_msg("%s", err.msg);
}

static void must_have(const struct rule *r, size_t at, const char *name, const char *value)
{
	assert_true(at < r->n_fields);
	assert_true(bytes_eq(r->fields[at].name, bytes_str(name)));
	assert_true(bytes_eq(r->fields[at].value, bytes_str(value)));
}

static void a_value_is_a_text_with_secrets_in_it(void **state)
{
	struct world *w = *state;
	const struct rule *r;

	fill(w,
	     "{\"api.example.com\":" HEADERS("\"Authorization\":\"Bearer "
					     "${e2b.secrets.OpenAI}!\",\"X\":\"${other} $\"") "}",
	     "team1/openai", "sk-123");
	r = rules_find(&w->rules, "api.example.com");
	assert_non_null(r);
	assert_string_equal(r->refuse, "");
	assert_true(r->secret);
	must_have(r, 0, "Authorization", "Bearer sk-123!");
	must_have(r, 1, "X", "${other} $");
	assert_null(rules_find(&w->rules, "example.com"));
	assert_null(rules_find(&w->rules, "sub.api.example.com"));
}

static void the_closest_host_counts(void **state)
{
	struct world *w = *state;

	fill(w,
	     "{\"*.example.com\":" HEADERS("\"X\":\"1\"") ",\"*.b.example.com\":" HEADERS(
		     "\"X\":\"2\"") ",\"A.B.example.com\":" HEADERS("\"X\":\"3\"") "}",
	     "team1/openai", "x");
	must_have(rules_find(&w->rules, "c.example.com"), 0, "X", "1");
	must_have(rules_find(&w->rules, "c.b.example.com"), 0, "X", "2");
	must_have(rules_find(&w->rules, "a.b.example.com"), 0, "X", "3");
	assert_false(w->rules.all[0].secret);
}

static const struct {
	const char *name, *header, *label, *value, *says;
} refused[] = {
	{ "no such secret", "\"A\":\"${e2b.secrets.none}\"", "team1/openai", "x", "none" },
	{ "another team's", "\"A\":\"${e2b.secrets.openai}\"", "team2/openai", "x", "openai" },
	{ "another name's", "\"A\":\"${e2b.secrets.openai}\"", "team1/other", "x", "openai" },
	{ "an identity", "\"A\":\"${e2b.identity.tokens.me}\"", "team1/openai", "x", "identity" },
	{ "not ended", "\"A\":\"${e2b.secrets.openai\"", "team1/openai", "x", "read" },
	{ "a line in it", "\"A\":\"${e2b.secrets.openai}\"", "team1/openai", "x\r\nB: c", "stand" },
	{ "a line behind it", "\"A\":\"${e2b.secrets.openai}\"", "team1/openai", "x\n", "stand" },
	{ "a line in a literal", "\"A\":\"b\\r\\nC: d\"", "team1/openai", "x", "stand" },
};

static void a_value_that_cannot_be_had_refuses_its_host(void **state)
{
	struct world *w = *state;

	FOR_ROWS(row, refused) {
		char rules[512];
		const struct rule *r;

		snprintf(rules, sizeof(rules),
			 "{\"a.com\":[{\"transform\":{\"headers\":{%s}}}],\"b.com\":[]}",
			 row->header);
		fill(w, rules, row->label, row->value);
		r = rules_find(&w->rules, "a.com");
		assert_non_null(strstr(r->refuse, row->says));
		assert_int_equal(r->n_fields, 0);
		assert_string_equal(rules_find(&w->rules, "b.com")->refuse, "");
	}
}

static const struct {
	const char *name, *text;
} invalid[] = {
	{ "nothing", "{}" },
	{ "no rules", "{\"rules\":{}}" },
	{ "everybody", "{\"rules\":{\"*\":[]}}" },
	{ "an address", "{\"rules\":{\"1.2.3.4\":[]}}" },
	{ "no object", "{\"rules\":{\"a.com\":[1]}}" },
	{ "no string", "{\"rules\":{\"a.com\":" HEADERS("\"A\":1") "}}" },
	{ "its host", "{\"rules\":{\"a.com\":" HEADERS("\"Host\":\"b.com\"") "}}" },
	{ "its length", "{\"rules\":{\"a.com\":" HEADERS("\"Content-length\":\"1\"") "}}" },
	{ "no name", "{\"rules\":{\"a.com\":" HEADERS("\"a b\":\"1\"") "}}" },
};

static void rules_that_cannot_be_are_an_error(void **state)
{
	struct world *w = *state;

	FOR_ROWS(row, invalid) {
		struct err err = { 0 };
		json_t *filled = NULL;

		assert_int_equal(rules_fill(bytes_str(row->text), "t", w->key, &filled, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_null(filled);
	}
}

static void without_rules_there_may_be_pages(void **state)
{
	struct world *w = *state;
	struct err err;

	assert_int_equal(rules_fill(BYTES_LIT("{\"rules\":{},\"refusalPages\":true}"), "t", w->key,
				    &w->filled, &err),
			 0);
	assert_true(json_is_true(json_object_get(w->filled, "refusalPages")));
	assert_int_equal(rules_read(json_object_get(w->filled, "rules"), &w->rules, &err), 0);
	assert_int_equal(w->rules.n, 0);
	assert_null(rules_find(&w->rules, "a.com"));
}

static void a_secret_has_its_length(void **state)
{
	struct world *w = *state;
	char *value = calloc(1, RULES_VALUE_MAX + 2);

	memset(value, 'x', RULES_VALUE_MAX);
	fill(w, "{\"a.com\":" HEADERS("\"A\":\"${e2b.secrets.openai}\"") "}", "team1/openai",
	     value);
	assert_string_equal(rules_find(&w->rules, "a.com")->refuse, "");
	value[RULES_VALUE_MAX] = 'x';
	fill(w, "{\"a.com\":" HEADERS("\"A\":\"${e2b.secrets.openai}\"") "}", "team1/openai",
	     value);
	assert_string_not_equal(rules_find(&w->rules, "a.com")->refuse, "");
	free(value);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

/* Egress hands over what rules or refusals want; another word of it is no reason to end. */
static void without_a_branch_there_is_no_certificate(void **state)
{
	AUTO(auto_free) struct leaves *none = calloc(1, sizeof(*none));
	const struct identity *got = NULL;
	struct err err;

	(void)state;
	assert_non_null(none);
	assert_int_equal(leaves_get(none, "a.test", &got, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	leaves_done(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_value_is_a_text_with_secrets_in_it),
		TEST(the_closest_host_counts),
		TEST(a_value_that_cannot_be_had_refuses_its_host),
		TEST(rules_that_cannot_be_are_an_error),
		TEST(without_rules_there_may_be_pages),
		TEST(a_secret_has_its_length),
		cmocka_unit_test(without_a_branch_there_is_no_certificate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
