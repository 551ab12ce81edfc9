/* test_wire_ip.c - addresses and ranges: one notation, and what each address is. */
#include "tests/unit/check.h"

#include "wire/ip.h"

static void one_notation_is_an_address(void **state)
{
	static const struct {
		const char *name;
		bool good;
		uint32_t ip;
	} rows[] = {
		{ "0.0.0.0", true, 0 },
		{ "1.2.3.4", true, 0x01020304 },
		{ "255.255.255.255", true, 0xffffffff },
		{ "256.1.1.1", false, 0 },
		{ "1.2.3", false, 0 },
		{ "1.2.3.4.5", false, 0 },
		{ "01.2.3.4", false, 0 },
		{ "0x7f.0.0.1", false, 0 },
		{ "2130706433", false, 0 },
		{ "127.1", false, 0 },
		{ " 1.2.3.4", false, 0 },
		{ "1.2.3.4 ", false, 0 },
		{ "1.2.3.", false, 0 },
		{ "1..2.3", false, 0 },
		{ "+1.2.3.4", false, 0 },
		{ "", false, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char text[IP4_TEXT_MAX];
		uint32_t ip = 0;

		assert_int_equal(ip4_parse(bytes_str(row->name), &ip), row->good);
		if (!row->good)
			continue;
		assert_int_equal(ip, row->ip);
		ip4_text(ip, text);
		assert_string_equal(text, row->name);
	}
}

static void ranges_have_what_is_in_them(void **state)
{
	static const struct {
		const char *name;
		const char *has, *not;
	} rows[] = {
		{ "10.0.0.0/8", "10.255.0.1", "11.0.0.0" },
		{ "10.1.2.3/8", "10.255.0.1", "11.0.0.0" },
		{ "1.1.1.1", "1.1.1.1", "1.1.1.2" },
		{ "1.1.1.1/32", "1.1.1.1", "1.1.1.0" },
		{ "128.0.0.0/1", "255.1.1.1", "127.255.255.255" },
		{ "0.0.0.0/0", "8.8.8.8", NULL },
		{ "::ffff:1.2.3.4", "1.2.3.4", "1.2.3.5" },
		{ "::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.0" },
		{ "2001:db8::/32", NULL, "32.1.13.184" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		uint32_t ip = 0;
		struct cidr c;

		assert_true(cidr_parse(bytes_str(row->name), &c));
		assert_true(!row->has || (ip4_parse(bytes_str(row->has), &ip) && cidr_has(&c, ip)));
		assert_false(row->not&&ip4_parse(bytes_str(row->not), &ip) && cidr_has(&c, ip));
		assert_int_equal(cidr_is_all(&c), strcmp(row->name, "0.0.0.0/0") == 0);
	}
}

static void what_is_no_range(void **state)
{
	static const struct {
		const char *name;
	} rows[] = { { "0.0.0.0" },
		     { "0.0.0.0/8" },
		     { "::" },
		     { "::/0" },
		     { "1.2.3.4/33" },
		     { "1.2.3.4/" },
		     { "1.2.3.4/08" },
		     { "1.2.3.4/-1" },
		     { "1.2.3.4/8/8" },
		     { "example.com" },
		     { "fe80::1%1" },
		     { "::1/129" },
		     { "" },
		     { "::ffff:0.0.0.0" } };

	(void)state;
	FOR_ROWS(row, rows) {
		struct cidr c;

		assert_false(cidr_parse(bytes_str(row->name), &c));
	}
}

static void nobody_reaches_what_is_not_public(void **state)
{
	static const struct {
		const char *name;
		enum ip4_kind kind;
	} rows[] = {
		{ "8.8.8.8", IP4_PUBLIC },           { "0.1.2.3", IP4_THIS_HOST },
		{ "10.0.0.1", IP4_PRIVATE },         { "172.15.255.255", IP4_PUBLIC },
		{ "172.16.0.0", IP4_PRIVATE },       { "172.31.255.255", IP4_PRIVATE },
		{ "172.32.0.0", IP4_PUBLIC },        { "192.168.0.1", IP4_PRIVATE },
		{ "100.64.0.1", IP4_SHARED },        { "100.100.100.200", IP4_SHARED },
		{ "127.0.0.53", IP4_LOOPBACK },      { "169.254.169.254", IP4_LINK_LOCAL },
		{ "168.63.129.16", IP4_METADATA },   { "168.63.129.17", IP4_PUBLIC },
		{ "192.0.0.192", IP4_SPECIAL },      { "192.0.2.1", IP4_SPECIAL },
		{ "198.19.255.255", IP4_SPECIAL },   { "203.0.113.9", IP4_SPECIAL },
		{ "224.0.0.251", IP4_MULTICAST },    { "239.255.255.255", IP4_MULTICAST },
		{ "255.255.255.255", IP4_RESERVED }, { "240.0.0.1", IP4_RESERVED },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		uint32_t ip = 0;

		assert_true(ip4_parse(bytes_str(row->name), &ip));
		assert_int_equal(ip4_kind(ip), row->kind);
		assert_non_null(ip4_kind_name(row->kind));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_notation_is_an_address),
		cmocka_unit_test(ranges_have_what_is_in_them),
		cmocka_unit_test(what_is_no_range),
		cmocka_unit_test(nobody_reaches_what_is_not_public),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
