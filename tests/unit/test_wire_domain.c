/* test_wire_domain.c - names and patterns: one form, no addresses, which one is closer. */
#include "tests/unit/check.h"

#include "wire/domain.h"

static void names_have_one_form(void **state)
{
	static const struct {
		const char *name;
		const char *normal; /* NULL: none */
	} rows[] = {
		{ "example.com", "example.com" },
		{ "Example.COM.", "example.com" },
		{ "localhost", "localhost" },
		{ "a_b.example.com", "a_b.example.com" },
		{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
		{ "1password.com", "1password.com" },
		{ "3.14.example", "3.14.example" },
		{ "", NULL },
		{ ".", NULL },
		{ "a..b", NULL },
		{ ".a", NULL },
		{ "a.com..", NULL },
		{ "-a.com", NULL },
		{ "a-.com", NULL },
		{ "a b.com", NULL },
		{ "b\303\274cher.example", NULL },
		{ "a/b.com", NULL },
		{ "*.com", NULL },
		{ "1.2.3.4", NULL },
		{ "1.2.3.4.", NULL },
		{ "2130706433", NULL },
		{ "0x7f000001", NULL },
		{ "0x7f.1", NULL },
		{ "127.0x1", NULL },
		{ "0177.0.0.01", NULL },
		{ "0x", NULL },
		{ "[::1]", NULL },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char normal[DOMAIN_SIZE] = "?";

		assert_int_equal(domain_normal(bytes_str(row->name), normal), !!row->normal);
		if (row->normal)
			assert_string_equal(normal, row->normal);
	}
}

static void lengths_end_where_they_must(void **state)
{
	char name[300], normal[DOMAIN_SIZE];

	(void)state;
	memset(name, 'a', sizeof(name));
	assert_true(domain_normal((struct bytes){ (uint8_t *)name, 63 }, normal));
	assert_false(domain_normal((struct bytes){ (uint8_t *)name, 64 }, normal));
	for (size_t i = 50; i < sizeof(name); i += 51)
		name[i] = '.';
	assert_true(domain_normal((struct bytes){ (uint8_t *)name, 253 }, normal));
	assert_false(domain_normal((struct bytes){ (uint8_t *)name, 254 }, normal));
}

static void a_port_may_stand_behind_a_name(void **state)
{
	static const struct {
		const char *name;
		const char *normal; /* NULL: none */
		unsigned int port;
	} rows[] = {
		{ "hotcell.localhost", "hotcell.localhost", 0 },
		{ "Hotcell.localhost:8443", "hotcell.localhost", 8443 },
		{ "localhost:3000", "localhost", 3000 },
		{ "a.test.:1", "a.test", 1 },
		{ "a.test:65535", "a.test", 65535 },
		{ "a.test:65536", NULL, 0 },
		{ "a.test:0", NULL, 0 },
		{ "a.test:", NULL, 0 },
		{ "a.test:+1", NULL, 0 },
		{ "a.test:000001", NULL, 0 },
		{ "a.test:1:2", NULL, 0 },
		{ ":443", NULL, 0 },
		{ "127.0.0.1:443", NULL, 0 },
		{ "[::1]:443", NULL, 0 },
		{ "https://a.test", NULL, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char normal[DOMAIN_SIZE] = "?";
		uint16_t port = 7;

		assert_int_equal(domain_and_port(bytes_str(row->name), normal, &port),
				 !!row->normal);
		if (!row->normal)
			continue;
		assert_string_equal(normal, row->normal);
		assert_int_equal(port, row->port);
	}
}

static void patterns_match_below(void **state)
{
	static const struct {
		const char *name;
		const char *host;
		bool match;
	} rows[] = {
		{ "*", "example.com", true },
		{ "example.com", "example.com", true },
		{ "Example.com", "example.com", true },
		{ "example.com", "www.example.com", false },
		{ "*.example.com", "www.example.com", true },
		{ "*.example.com", "a.b.example.com", true },
		{ "*.example.com", "example.com", false },
		{ "*.example.com", "badexample.com", false },
		{ "*.example.com", "example.com.evil.org", false },
		{ "*.com", "example.com", true },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char pattern[DOMAIN_SIZE];

		assert_true(domain_pattern(bytes_str(row->name), pattern));
		assert_int_equal(domain_match(pattern, row->host), row->match);
	}
}

static void what_is_no_pattern(void **state)
{
	static const struct {
		const char *name;
	} rows[] = { { "" },        { "**" },     { "*." },        { "*.*.com" },
		     { "a.*.com" }, { "*a.com" }, { "*.1.2.3.4" }, { "*example.com" } };

	(void)state;
	FOR_ROWS(row, rows) {
		char pattern[DOMAIN_SIZE];

		assert_false(domain_pattern(bytes_str(row->name), pattern));
	}
}

static void the_closer_rule_wins(void **state)
{
	(void)state;
	assert_true(domain_is_closer("a.com", "*.a.com"));
	assert_true(domain_is_closer("a.com", "*"));
	assert_true(domain_is_closer("*.b.a.com", "*.a.com"));
	assert_true(domain_is_closer("*.com", "*"));
	assert_false(domain_is_closer("*", "*.com"));
	assert_false(domain_is_closer("*.longest.example.com", "a.com"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_have_one_form),
		cmocka_unit_test(lengths_end_where_they_must),
		cmocka_unit_test(a_port_may_stand_behind_a_name),
		cmocka_unit_test(patterns_match_below),
		cmocka_unit_test(what_is_no_pattern),
		cmocka_unit_test(the_closer_rule_wins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
