/* test_wire_ip_range.c - addresses and ranges as an operator lists them. */
#include "tests/unit/check.h"

#include "wire/ip_range.h"

static void a_range_has_its_addresses_and_no_others(void **state)
{
	static const struct {
		const char *range, *ip;
		bool has;
	} rows[] = {
		{ "192.0.2.7", "192.0.2.7", true },
		{ "192.0.2.7", "192.0.2.6", false },
		{ "192.0.2.7", "::ffff:192.0.2.7", true },
		{ "::ffff:192.0.2.7", "192.0.2.7", true },
		{ "192.0.2.0/24", "192.0.2.255", true },
		{ "192.0.2.0/24", "192.0.3.0", false },
		{ "192.0.2.4/30", "192.0.2.7", true },
		{ "192.0.2.4/30", "192.0.2.8", false },
		{ "10.0.0.0/8", "10.255.0.1", true },
		{ "10.0.0.0/8", "2001:db8::1", false },
		{ "10.0.0.0/8", "a00::", false },
		{ "2001:db8::/32", "2001:db8:ffff::1", true },
		{ "2001:db8::/32", "2001:db9::1", false },
		{ "2001:db8::/33", "2001:db8:8000::", false },
		{ "::1", "::1", true },
		{ "::1", "127.0.0.1", false },
		{ "0.0.0.0/0", "255.1.2.3", true },
		{ "0.0.0.0/0", "::1", false },
		{ "::/0", "1.2.3.4", true },
	};
	struct ip_range r;
	struct ip ip;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(ip_range_parse(bytes_str(rows[i].range), &r));
		assert_true(ip_parse(bytes_str(rows[i].ip), &ip));
		assert_int_equal(ip_range_has(&r, &ip), rows[i].has);
	}
}

static void what_is_no_range_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"/",
		"/24",
		"192.0.2.0/",
		"192.0.2.0/33",
		"192.0.2.0/024",
		"192.0.2.1/24",
		"192.0.2/24",
		"192.0.2.0/2 4",
		"192.0.2.0/-1",
		"localhost",
		"::1/129",
		"2001:db8::1/32",
		"[::1]",
		"fe80::1%eth0",
		"1.2.3.4:80",
		"192.0.02.1",
		"::ffff:1.2.3.4/32",
		"1.2.3.4/24/8",
	};
	struct ip_range r;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_false(ip_range_parse(bytes_str(bad[i]), &r));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_has_its_addresses_and_no_others),
		cmocka_unit_test(what_is_no_range_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
