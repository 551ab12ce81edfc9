/* test_egress_told.c - what egress tells of a sandbox: its last decisions, the names it was given,
 * and why something is allowed. */
#include "tests/unit/check.h"

#include "base/log.h"
#include "egress/audit.h"
#include "egress/explain.h"
#include "egress/fake_ip.h"
#include "wire/json.h"

static json_t *decoded(const struct buf *text)
{
	json_t *v = NULL;
	struct err err = { 0 };

	if (json_decode(buf_view(text), text->max, 10, &v, &err) < 0)
		fail_msg("%s", err.msg);
	return v;
}

static const char *member(const json_t *v, const char *name)
{
	return json_string_value(json_object_get(v, name));
}

/* --- decisions ------------------------------------------------------------------------------ */

static json_t *told(const struct audit *a)
{
	AUTO(buf_done) struct buf out = BUF_MAX(AUDIT_TEXT_MAX);
	struct err err = { 0 };

	assert_int_equal(audit_tell(a, &out, &err), 0);
	return decoded(&out);
}

static void decisions_are_kept_the_newest(void **state)
{
	struct audit a = { 0 };
	struct audit_entry e = {
		SANDBOX_EGRESS_TLS, AUDIT_ALLOWED, "a.com", 0x01020304, 0, "rule"
	};
	AUTO(json_decrefp) json_t *none = told(&a);
	AUTO(json_decrefp) json_t *all = NULL;

	(void)state;
	assert_int_equal(json_array_size(none), 0);
	for (uint16_t i = 1; i <= AUDIT_KEPT + 10; i++) {
		e.port = i;
		audit_add(&a, "x", &e);
	}
	all = told(&a);
	assert_int_equal(json_array_size(all), AUDIT_KEPT);
	for (size_t i = 0; i < AUDIT_KEPT; i++)
		assert_int_equal(
			json_integer_value(json_object_get(json_array_get(all, i), "port")),
			i + 11);
	assert_string_equal(member(json_array_get(all, 0), "kind"), "tls");
	assert_string_equal(member(json_array_get(all, 0), "verdict"), "allowed");
	assert_string_equal(member(json_array_get(all, 0), "name"), "a.com");
	assert_string_equal(member(json_array_get(all, 0), "address"), "1.2.3.4");
	assert_string_equal(member(json_array_get(all, 0), "why"), "rule");
	audit_done(&a, "x");
	assert_null(a.kept);
}

static void a_decision_has_what_there_is(void **state)
{
	struct audit a = { 0 };
	const struct audit_entry e = {
		SANDBOX_EGRESS_TCP, AUDIT_REFUSED, "", 0, 0, "bad \xff byte"
	};
	AUTO(json_decrefp) json_t *all = NULL;

	(void)state;
	audit_add(&a, "x", &e);
	all = told(&a);
	assert_null(json_object_get(json_array_get(all, 0), "name"));
	assert_null(json_object_get(json_array_get(all, 0), "address"));
	assert_null(json_object_get(json_array_get(all, 0), "port"));
	assert_string_equal(member(json_array_get(all, 0), "why"), "bad ? byte");
	audit_done(&a, "x");
}

static void the_longest_decisions_fit(void **state)
{
	struct audit a = { 0 };
	char name[DOMAIN_SIZE] = "", why[POLICY_WHY_MAX] = "";
	const struct audit_entry e = { SANDBOX_EGRESS_HTTP, AUDIT_REFUSED, name, ~0u, 65535, why };
	AUTO(json_decrefp) json_t *all = NULL;

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	memset(why, 1, sizeof(why) - 1);
	for (int i = 0; i < AUDIT_KEPT; i++)
		audit_add(&a, "x", &e);
	all = told(&a);
	assert_int_equal(json_array_size(all), AUDIT_KEPT);
	audit_done(&a, "x");
}

static void a_log_is_not_flooded(void **state)
{
	struct audit a = { 0 };
	const struct audit_entry e = { SANDBOX_EGRESS_NAME, AUDIT_REFUSED, "a.com", 0, 0, "no" };

	(void)state;
	for (int i = 0; i < AUDIT_LINES + 7; i++)
		audit_add(&a, "x", &e);
	assert_int_equal(a.lines, AUDIT_LINES);
	assert_int_equal(a.unsaid, 7);
	a.since_ns = 1; /* long ago */
	audit_add(&a, "x", &e);
	assert_int_equal(a.lines, 1);
	assert_int_equal(a.unsaid, 0);
	audit_done(&a, "x");
}

/* --- names ---------------------------------------------------------------------------------- */

static void know(struct known_names *k, const char *name, uint32_t ip)
{
	const struct dns_addresses a = { { ip }, 1, 60 };

	known_names_add(k, name, &a);
}

static void the_oldest_name_goes_first(void **state)
{
	AUTO(known_names_done) struct known_names k = { 0 };
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < KNOWN_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		know(&k, name, i);
	}
	know(&k, "n0", 0); /* given again: it stays */
	know(&k, "new", 1);
	assert_int_equal(k.n, KNOWN_NAMES_MAX);
	assert_string_equal(known_names_of(&k, 0, 0), "n0");
	assert_string_equal(known_names_of(&k, 1, 0), "new");
	assert_null(known_names_of(&k, 1, 1));
}

static void names_survive_as_text(void **state)
{
	AUTO(known_names_done) struct known_names k = { 0 };
	AUTO(known_names_done) struct known_names again = { 0 };
	AUTO(buf_done) struct buf out = BUF_MAX(POLICY_TEXT_MAX);
	AUTO(json_decrefp) json_t *rules = json_object();
	struct err err = { 0 };
	char name[16];

	(void)state;
	know(&k, "shared.com", 5);
	for (uint32_t i = 0; i < KNOWN_TOLD_MAX; i++) {
		snprintf(name, sizeof(name), "n%u.com", i);
		know(&k, name, 0x01020300 + i);
	}
	know(&k, "n0.com", 7);
	assert_int_equal(known_names_tell(&k, &out, &err), 0);
	json_object_set_new(rules, "known", decoded(&out));
	assert_int_equal(known_names_read(&again, rules, &err), 0);
	assert_int_equal(again.n, KNOWN_TOLD_MAX);
	assert_null(known_names_of(&again, 5, 0)); /* too old */
	assert_null(known_names_of(&again, 0x01020300, 0));
	assert_string_equal(known_names_of(&again, 0x01020301, 0), "n1.com");
	assert_string_equal(again.all[again.n - 1].name, "n0.com");
}

static void known_names_that_are_none_are_refused(void **state)
{
	static const struct {
		const char *name;
	} rows[] = {
		{ "{\"known\":{}}" },
		{ "{\"known\":[1]}" },
		{ "{\"known\":[[\"a.com\"]]}" },
		{ "{\"known\":[[\"a.com\",\"1.2.3.4\",1]]}" },
		{ "{\"known\":[[\"a.com\",\"1.2.3.04\"]]}" },
		{ "{\"known\":[[\"a.com\",\"1.2.3.4\"],[\"a..com\",\"1.2.3.4\"]]}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(known_names_done) struct known_names k = { 0 };
		AUTO(json_decrefp) json_t *v = NULL;
		struct err err = { 0 };

		assert_int_equal(policy_decode(bytes_str(row->name), &v, &err), 0);
		assert_int_equal(known_names_read(&k, v, &err), -1);
		assert_int_equal(k.n, 0);
	}
}

static void a_name_has_an_address_that_stands_for_it(void **state)
{
	AUTO(known_names_done) struct known_names k = { 0 };
	uint32_t a = fake_ip_for(&k, "a.com"), b = fake_ip_for(&k, "b.com"), last = 0;
	char name[16];

	(void)state;
	assert_true(is_fake_ip(a) && is_fake_ip(b) && a != b);
	assert_int_equal(fake_ip_for(&k, "a.com"), a);
	assert_string_equal(known_names_of(&k, b, 0), "b.com");
	assert_int_equal(ip4_kind(a), IP4_SPECIAL);
	know(&k, "real.com", 0x08080808);
	know(&k, "last.com", FAKE_IP_LAST); /* from here on it begins anew, past those in use */
	for (int i = 0; i < KNOWN_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "n%d.com", i);
		last = fake_ip_for(&k, name);
		assert_true(is_fake_ip(last));
		assert_string_equal(known_names_of(&k, last, 0), name);
		assert_null(known_names_of(&k, last, 1));
	}
	assert_null(known_names_of(&k, a, 1));
	assert_true(fake_ip_for(&k, "a.com") != 0);
}

/* --- why ------------------------------------------------------------------------------------ */

static const struct policy_ground ground = {
	.mode = POLICY_OPEN,
	.services = { { "db", 0x0a010203, 5432 } },
	.n_services = 1,
};

static json_t *explained(const struct policy_ground *g, const char *in)
{
	AUTO(buf_done) struct buf out = BUF_MAX(EXPLAIN_OUT_MAX);
	AUTO(explain_done) struct explain x = { 0 };
	struct err err = { 0 };

	if (explain_begin(&x, g, bytes_str(in), &err) < 0 || explain_tell(&x, &out, &err) < 0)
		fail_msg("%s", err.msg);
	return decoded(&out);
}

#define RULES                                                                                 \
	"{\"rules\":{\"services\":[\"db\"],\"packages\":[\"deb.org\"],\"known\":[[\"a.com\"," \
	"\"9.9.9.9\"]],\"network\":{\"allowOut\":[\"a.com\"],\"denyOut\":[\"0.0.0.0/0\"],"    \
	"\"rules\":{\"a.com\":[]}}}"

static void a_question_is_answered_with_the_rule(void **state)
{
	static const struct {
		const char *name, *why;
		bool yes, opened;
	} rows[] = {
		{ "a.com:443", "allowOut a.com", true, true },
		{ "A.com.", "allowOut a.com", true, true },
		{ "b.com", "denyOut 0.0.0.0/0", false, false },
		{ "9.9.9.9:22", "given for a.com: allowOut a.com", true, false },
		{ "8.8.8.8", "denyOut 0.0.0.0/0", false, false },
		{ "127.0.0.1", "the address is loopback", false, false },
		{ "db.hotcell.internal", "service db.hotcell.internal", true, false },
		{ "db.hotcell.internal:80", "the service is at port 5432", false, false },
		{ "10.1.2.3:5432", "a service", true, false },
		{ "10.1.2.3:80", "the address is private", false, false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char in[512];
		AUTO(json_decrefp) json_t *v = NULL;
		const json_t *answer;

		snprintf(in, sizeof(in), RULES ",\"question\":\"%s\"}", row->name);
		v = explained(&ground, in);
		answer = json_object_get(v, "answer");
		assert_string_equal(member(answer, "question"), row->name);
		assert_string_equal(member(answer, "why"), row->why);
		assert_int_equal(json_is_true(json_object_get(answer, "allowed")), row->yes);
		assert_int_equal(json_is_true(json_object_get(answer, "opened")), row->opened);
	}
}

/* Whoever names a service can be told that it is none. */
static void what_is_published_is_told_to_all(void **state)
{
	AUTO(json_decrefp) json_t *v = explained(&ground, "{\"rules\":{}}");
	AUTO(auto_free) char *all = json_dumps(json_object_get(v, "published"), JSON_COMPACT);

	(void)state;
	assert_string_equal(all, "[\"db\"]");
	assert_int_equal(json_array_size(json_object_get(v, "services")), 0);
}

/* An address that stands for a name leads somewhere only where the proxy resolves. */
static void a_stand_in_is_explained_as_it_is_decided(void **state)
{
	struct policy_ground g = { .mode = POLICY_OPEN };

	(void)state;
	for (int resolves = 0; resolves < 2; resolves++) {
		AUTO(json_decrefp) json_t *v = NULL;
		const json_t *answer;

		g.proxy_resolves = resolves;
		v = explained(&g, "{\"rules\":{\"known\":[[\"a.com\",\"198.18.0.1\"]]},"
				  "\"question\":\"198.18.0.1:22\"}");
		answer = json_object_get(v, "answer");
		assert_int_equal(json_is_true(json_object_get(answer, "allowed")), resolves);
		assert_string_equal(member(answer, "why"),
				    resolves ? "given for a.com: operator: open"
					     : "the address is special purpose");
	}
}

/* What a name leads to decides, as for a connection. */
static void addresses_are_judged(void **state)
{
	static const struct {
		const char *name, *why; /* the resolver's word, and what becomes of it */
		enum dns_reading reading;
		struct dns_addresses found;
		bool yes;
	} rows[] = {
		{ "public", "allowOut a.com", DNS_ANSWERED, { { 0x08080808 }, 1 }, true },
		{ "private",
		  "the address is private; its rule would let it: allowOut a.com",
		  DNS_ANSWERED,
		  { { 0x0a000001 }, 1 } },
		{ "mixed",
		  "allowOut a.com",
		  DNS_ANSWERED,
		  { { 0x0a000001, 0x08080808 }, 2 },
		  true },
		{ "special",
		  "the address is special purpose; its rule would let it: allowOut a.com",
		  DNS_ANSWERED,
		  { { 0xcb007150 }, 1 } },
		{ "none", "the name has no address; its rule would let it: allowOut a.com",
		  DNS_NO_NAME },
		{ "nobody", "no resolver answers; its rule would let it: allowOut a.com",
		  DNS_FAILED },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(EXPLAIN_OUT_MAX);
		AUTO(explain_done) struct explain x = { 0 };
		AUTO(json_decrefp) json_t *v = NULL;
		struct err err = { 0 };
		const json_t *answer;

		assert_int_equal(explain_begin(&x, &ground,
					       BYTES_LIT(RULES ",\"question\":\"a.com:443\"}"),
					       &err),
				 0);
		assert_string_equal(x.name, "a.com");
		explain_found(&x, row->reading, &row->found);
		assert_int_equal(explain_tell(&x, &out, &err), 0);
		v = decoded(&out);
		answer = json_object_get(v, "answer");
		assert_string_equal(member(answer, "why"), row->why);
		assert_int_equal(json_is_true(json_object_get(answer, "allowed")), row->yes);
		assert_int_equal(json_is_true(json_object_get(answer, "opened")), row->yes);
		assert_int_equal(json_array_size(json_object_get(answer, "addresses")),
				 row->found.n);
	}
}

static void without_a_question_all_that_holds_is_told(void **state)
{
	AUTO(policy_ground_done)
	struct policy_ground g = { .mode = POLICY_ALLOWLIST,
				   .services = { { "db", 0x0a010203, 5432 } },
				   .n_services = 1 };
	AUTO(json_decrefp) json_t *v = NULL;
	AUTO(json_decrefp) json_t *want = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(policy_ground_allow(&g, BYTES_LIT("packages *.corp.com"), &err), 0);
	v = explained(&g, RULES "}");
	want = json_pack("{s{ss s[ss]} s[s] s[s] s[s] s[s] s[{ss ss si}] s[s]}", "operator", "mode",
			 "allowlist", "allow", "packages", "*.corp.com", "packages", "deb.org",
			 "allowOut", "a.com", "denyOut", "0.0.0.0/0", "opened", "a.com", "services",
			 "name", "db.hotcell.internal", "address", "10.1.2.3", "port", 5432,
			 "published", "db");
	assert_non_null(want);
	assert_true(json_equal(v, want));
}

static void what_is_no_question_is_refused(void **state)
{
	static const struct {
		const char *name;
	} rows[] = {
		{ "{}" },
		{ "{\"rules\":{\"network\":1}}" },
		{ "{\"rules\":{},\"question\":\"a..b\"}" },
		{ "{\"rules\":{},\"question\":\"::1\"}" },
		{ "{\"rules\":{},\"question\":\"a.com:0\"}" },
		{ "{\"rules\":{},\"question\":\"a.com:70000\"}" },
		{ "{\"rules\":{},\"question\":\"0x7f000001\"}" },
		{ "{\"rules\":{},\"question\":1}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(explain_done) struct explain x = { 0 };
		struct err err = { 0 };

		assert_int_equal(explain_begin(&x, &ground, bytes_str(row->name), &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decisions_are_kept_the_newest),
		cmocka_unit_test(a_decision_has_what_there_is),
		cmocka_unit_test(the_longest_decisions_fit),
		cmocka_unit_test(a_log_is_not_flooded),
		cmocka_unit_test(the_oldest_name_goes_first),
		cmocka_unit_test(names_survive_as_text),
		cmocka_unit_test(known_names_that_are_none_are_refused),
		cmocka_unit_test(a_name_has_an_address_that_stands_for_it),
		cmocka_unit_test(a_question_is_answered_with_the_rule),
		cmocka_unit_test(what_is_published_is_told_to_all),
		cmocka_unit_test(a_stand_in_is_explained_as_it_is_decided),
		cmocka_unit_test(addresses_are_judged),
		cmocka_unit_test(without_a_question_all_that_holds_is_told),
		cmocka_unit_test(what_is_no_question_is_refused),
	};

	log_init("test", LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
