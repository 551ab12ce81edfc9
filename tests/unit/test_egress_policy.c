/* test_egress_policy.c - who may reach whom: the operator's ground, E2B's order, and what no rule
 * opens. */
#include "tests/unit/check.h"

#include "base/clock.h"
#include "egress/reach.h"
#include "wire/json.h"

static const struct policy_ground open_ground = {
	.mode = POLICY_OPEN,
	.services = { { "db", 0x0a010203, 5432 }, { "cache", 0x0a010204, 6379 } },
	.n_services = 2,
};

static int read_policy(struct policy *ret, const struct policy_ground *g, struct bytes text,
		       struct err *err)
{
	AUTO(json_decrefp) json_t *v = NULL;

	return policy_decode(text, &v, err) < 0 ? -1 : policy_of(ret, g, v, err);
}

static struct policy rules(const struct policy_ground *g, const char *text)
{
	struct policy p = { 0 };
	struct err err = { 0 };

	if (read_policy(&p, g, bytes_str(text), &err) < 0)
		fail_msg("%s", err.msg);
	return p;
}

static uint32_t ip_of(const char *text)
{
	uint32_t ip = 0;

	assert_true(ip4_parse(bytes_str(text), &ip));
	return ip;
}

#define DENY_ALL "\"denyOut\":[\"0.0.0.0/0\"]"

/* host and ip: a name that resolves to it. Without a host: the address alone. */
static void the_order_is_e2bs(void **state)
{
	static const struct {
		const char *name, *text, *host, *ip;
		bool yes;
	} rows[] = {
		{ "nothing said", "{}", "a.com", "8.8.8.8", true },
		{ "nothing said, address", "{}", NULL, "8.8.8.8", true },
		{ "no internet", "{\"allowInternetAccess\":false}", "a.com", "8.8.8.8", false },
		{ "no internet, address", "{\"allowInternetAccess\":false}", NULL, "8.8.8.8",
		  false },
		{ "an address denied", "{\"network\":{\"denyOut\":[\"8.8.8.8\"]}}", NULL, "8.8.8.8",
		  false },
		{ "another is not", "{\"network\":{\"denyOut\":[\"8.8.8.8\"]}}", NULL, "1.1.1.1",
		  true },
		{ "denied behind a name", "{\"network\":{\"denyOut\":[\"8.8.8.8\"]}}", "a.com",
		  "8.8.8.8", false },
		{ "allowed before denied",
		  "{\"network\":{\"allowOut\":[\"1.1.1.1\"]," DENY_ALL "}}", NULL, "1.1.1.1",
		  true },
		{ "all else denied", "{\"network\":{\"allowOut\":[\"1.1.1.1\"]," DENY_ALL "}}",
		  NULL, "1.0.0.1", false },
		{ "a name allowed", "{\"network\":{\"allowOut\":[\"a.com\"]," DENY_ALL "}}",
		  "a.com", "8.8.8.8", true },
		{ "its address alone is not",
		  "{\"network\":{\"allowOut\":[\"a.com\"]," DENY_ALL "}}", NULL, "8.8.8.8", false },
		{ "below a wildcard", "{\"network\":{\"allowOut\":[\"*.a.com\"]," DENY_ALL "}}",
		  "x.y.a.com", "8.8.8.8", true },
		{ "beside a wildcard", "{\"network\":{\"allowOut\":[\"*.a.com\"]," DENY_ALL "}}",
		  "a.com", "8.8.8.8", false },
		{ "snake case", "{\"network\":{\"deny_out\":[\"8.8.8.8\"]}}", NULL, "8.8.8.8",
		  false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(policy_done) struct policy p = rules(&open_ground, row->text);
		struct policy_verdict v = row->host ? policy_answer(&p, row->host, ip_of(row->ip))
						    : policy_address(&p, ip_of(row->ip));

		print_message("      %s\n", v.why);
		assert_int_equal(v.yes, row->yes);
		assert_true(v.why[0]);
	}
}

static void no_rule_opens_what_is_not_public(void **state)
{
	static const char *const inside[] = { "127.0.0.1",       "10.1.2.3",   "192.168.1.1",
					      "169.254.169.254", "100.64.0.1", "168.63.129.16",
					      "224.0.0.1",       "0.0.0.0",    "255.255.255.255" };
	AUTO(policy_done)
	struct policy p =
		rules(&open_ground, "{\"network\":{\"allowOut\":[\"a.com\",\"10.0.0.0/8\","
				    "\"127.0.0.1\",\"128.0.0.0/1\",\"*\"]}}");

	(void)state;
	for (size_t i = 0; i < COUNT(inside); i++) {
		assert_false(policy_address(&p, ip_of(inside[i])).yes);
		assert_false(policy_answer(&p, "a.com", ip_of(inside[i])).yes);
	}
}

static void a_sandbox_narrows_and_never_widens(void **state)
{
	AUTO(policy_ground_done) struct policy_ground g = { .mode = POLICY_ALLOWLIST };
	AUTO(policy_done) struct policy p = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		policy_ground_allow(&g, BYTES_LIT("packages  *.corp.com 9.9.9.0/24"), &err), 0);
	p = rules(&g, "{\"packages\":[\"deb.example\"],\"network\":{\"allowOut\":[\"a.com\","
		      "\"deb.example\",\"git.corp.com\",\"8.8.8.8\",\"9.9.9.9\"]," DENY_ALL "}}");
	assert_false(policy_name(&p, "a.com").yes);
	assert_true(policy_name(&p, "deb.example").yes);
	assert_true(policy_name(&p, "git.corp.com").yes);
	assert_false(policy_name(&p, "other.corp.com").yes);
	assert_false(policy_address(&p, ip_of("8.8.8.8")).yes);
	assert_true(policy_address(&p, ip_of("9.9.9.9")).yes);
	assert_false(policy_address(&p, ip_of("9.9.9.8")).yes);
	g.mode = POLICY_NONE;
	assert_false(policy_name(&p, "deb.example").yes);
	assert_false(policy_address(&p, ip_of("9.9.9.9")).yes);
}

static void services_are_for_those_who_may(void **state)
{
	AUTO(policy_done) struct policy p = rules(&open_ground, "{\"services\":[\"db\",\"gone\"]}");
	AUTO(policy_done) struct policy none = rules(&open_ground, "{}");

	(void)state;
	assert_int_equal(policy_service(&p, "db.hotcell.internal")->port, 5432);
	assert_null(policy_service(&p, "cache.hotcell.internal"));
	assert_null(policy_service(&p, "b.hotcell.internal"));
	assert_null(policy_service(&p, "db.hotcell.internal.evil.com"));
	assert_true(policy_answer(&p, "db.hotcell.internal", 0x0a010203).yes);
	assert_false(policy_answer(&p, "db.hotcell.internal", 0x0a010204).yes);
	assert_false(policy_name(&p, "cache.hotcell.internal").yes);
	assert_ptr_equal(policy_service_at(&p, 0x0a010203, 5432), &open_ground.services[0]);
	assert_null(policy_service_at(&p, 0x0a010203, 5433));
	assert_null(policy_service_at(&none, 0x0a010203, 5432));
}

static void hosts_with_a_rule_are_opened(void **state)
{
	AUTO(policy_done)
	struct policy p = rules(&open_ground, "{\"network\":{\"rules\":{\"api.a.com\":[],"
					      "\"*.b.com\":[{\"transform\":{}}]}}}");

	(void)state;
	assert_true(policy_opens(&p, "api.a.com"));
	assert_true(policy_opens(&p, "x.b.com"));
	assert_false(policy_opens(&p, "b.com"));
	assert_false(policy_opens(&p, "a.com"));
}

static void what_cannot_be_read_is_refused(void **state)
{
	static const struct {
		const char *name;
	} rows[] = {
		{ "" },
		{ "[]" },
		{ "{\"network\":1}" },
		{ "{\"network\":{\"allowOut\":\"a.com\"}}" },
		{ "{\"network\":{\"allowOut\":[1]}}" },
		{ "{\"network\":{\"allowOut\":[\"a b\"]}}" },
		{ "{\"network\":{\"denyOut\":[\"0.0.0.0\"]}}" },
		{ "{\"network\":{\"rules\":{\"a..b\":[]}}}" },
		{ "{\"allowInternetAccess\":\"no\"}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct policy p = { 0 };
		struct err err = { 0 };

		assert_int_equal(read_policy(&p, &open_ground, bytes_str(row->name), &err), -1);
		assert_true(err.msg[0]);
	}
}

static void an_operator_is_told_what_is_wrong(void **state)
{
	AUTO(policy_ground_done) struct policy_ground g = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		policy_ground_services(&g, BYTES_LIT("db=10.1.2.3:5432 x=1.2.3.4:80"), &err), 0);
	assert_int_equal(g.n_services, 2);
	assert_int_equal(policy_ground_services(&g, BYTES_LIT("db=host:5432"), &err), -1);
	assert_non_null(strstr(err.msg, "db=10.1.2.3:5432"));
	assert_int_equal(policy_ground_services(&g, BYTES_LIT("a.b=10.1.2.3:5432"), &err), -1);
	assert_int_equal(policy_ground_allow(&g, BYTES_LIT("a.com b..c"), &err), -1);
	assert_non_null(strstr(err.msg, "b..c"));
}

static void where_a_proxy_resolves_not_every_name_may_be_allowed(void **state)
{
	static const struct {
		const char *name, *allow;
		enum policy_mode mode;
		bool resolves;
		const char *wrong; /* NULL: nothing */
	} rows[] = {
		{ "open", "", POLICY_OPEN, true, "network = open" },
		{ "open, resolved here", "", POLICY_OPEN, false, NULL },
		{ "a list", "packages *.corp.com 0.0.0.0/0", POLICY_ALLOWLIST, true, NULL },
		{ "a list of all", "packages *", POLICY_ALLOWLIST, true, "allow = *" },
		{ "a list of all, resolved here", "*", POLICY_ALLOWLIST, false, NULL },
		{ "nobody", "*", POLICY_NONE, true, NULL },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(policy_ground_done)
		struct policy_ground g = { .mode = row->mode, .proxy_resolves = row->resolves };
		struct err err = { 0 };

		assert_int_equal(policy_ground_allow(&g, bytes_str(row->allow), &err), 0);
		assert_int_equal(policy_ground_check(&g, &err), row->wrong ? -1 : 0);
		if (row->wrong) {
			assert_non_null(strstr(err.msg, row->wrong));
			assert_non_null(strstr(err.msg, "set proxy_resolves = no"));
		}
	}
}

/* An address of 198.18.0.0/15 is worth its name where a proxy resolves names, and nothing else is.
 */
static void a_proxy_changes_nothing_about_addresses(void **state)
{
	static const char *const inside[] = { "127.0.0.1", "10.1.2.3", "169.254.169.254" };
	struct policy_ground g = { .mode = POLICY_ALLOWLIST };
	AUTO(policy_done) struct policy p = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(policy_ground_allow(&g, BYTES_LIT("a.com"), &err), 0);
	p = rules(&g, "{}");
	for (int resolves = 0; resolves < 2; resolves++) {
		g.proxy_resolves = resolves;
		for (size_t i = 0; i < COUNT(inside); i++)
			assert_false(policy_answer(&p, "a.com", ip_of(inside[i])).yes);
		assert_true(policy_answer(&p, "a.com", ip_of("8.8.8.8")).yes);
		assert_int_equal(policy_answer(&p, "a.com", ip_of("198.18.0.1")).yes, resolves);
		assert_false(policy_answer(&p, "b.com", ip_of("198.18.0.1")).yes);
		assert_false(policy_address(&p, ip_of("198.18.0.1")).yes);
	}
	policy_ground_done(&g);
}

/* --- many names of one address -------------------------------------------------------------- */

/* Best of a few: how long one connection to an address takes that was given for so many names, none
 * of which may be reached any more. */
static uint64_t time_with(const struct policy *p, unsigned int names)
{
	AUTO(known_names_done) struct known_names k = { 0 };
	const struct dns_addresses given = { { 0x08080808 }, 1, 60 };
	uint64_t best = UINT64_MAX;
	char name[64];

	for (unsigned int i = 0; i < names; i++) {
		snprintf(name, sizeof(name), "n%u.was-allowed.example.com", i);
		known_names_add(&k, name, &given);
	}
	for (int i = 0; i < 5; i++) {
		uint64_t since = clock_mono_ns(), took;

		assert_false(reach_address(p, &k, 0x08080808, 443).yes);
		took = clock_mono_ns() - since;
		best = took < best ? took : best;
	}
	return best;
}

/* It is everybody's thread: with 512 names of one address and 1000 rules each took 20 ms. */
static void many_names_of_one_address_do_not_hold_up_others(void **state)
{
	enum { TRIES = 3, TIMES = 8 };
	struct policy_ground g = { .mode = POLICY_OPEN };
	AUTO(policy_done) struct policy p = { .ground = &g };
	uint64_t few = 0, many = 0;
	char name[64];
	struct err err;

	(void)state;
	assert_int_equal(rule_list_add(&p.deny, BYTES_LIT("0.0.0.0/0"), &err), 0);
	for (unsigned int i = 0; i < RULES_MAX; i++) {
		snprintf(name, sizeof(name), "*.n%u.example.com", i);
		assert_int_equal(rule_list_add(&p.allow, bytes_str(name), &err), 0);
	}
	for (int i = 0; i < TRIES; i++) {
		few = time_with(&p, REACH_NAMES_MAX);
		many = time_with(&p, KNOWN_NAMES_MAX);
		if (many < TIMES * few)
			return;
	}
	fail_msg("%lu ns with many, %lu with few", many, few);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_is_e2bs),
		cmocka_unit_test(no_rule_opens_what_is_not_public),
		cmocka_unit_test(a_sandbox_narrows_and_never_widens),
		cmocka_unit_test(services_are_for_those_who_may),
		cmocka_unit_test(hosts_with_a_rule_are_opened),
		cmocka_unit_test(what_cannot_be_read_is_refused),
		cmocka_unit_test(an_operator_is_told_what_is_wrong),
		cmocka_unit_test(where_a_proxy_resolves_not_every_name_may_be_allowed),
		cmocka_unit_test(a_proxy_changes_nothing_about_addresses),
		cmocka_unit_test(many_names_of_one_address_do_not_hold_up_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
