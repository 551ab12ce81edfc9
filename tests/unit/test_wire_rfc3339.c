/* test_wire_rfc3339.c - both ways, edges of the calendar, and what is refused. */
#include "tests/unit/check.h"

#include "wire/rfc3339.h"

#define S 1000000000ull

static void known_times_go_both_ways(void **state)
{
	static const struct {
		const char *name;
		uint64_t ns;
		unsigned int digits;
	} rows[] = {
		{ "1970-01-01T00:00:00Z", 0, 0 },
		{ "1970-12-31T23:59:59Z", 31535999 * S, 0 },
		{ "1972-02-29T00:00:00Z", 68169600 * S, 0 },
		{ "1972-12-31T00:00:00Z", 94608000 * S, 0 },
		{ "2000-02-29T12:00:00Z", 951825600 * S, 0 },
		{ "2000-12-31T23:59:59.999999999Z", 978307199 * S + 999999999, 9 },
		{ "2001-01-01T00:00:00.000000001Z", 978307200 * S + 1, 9 },
		{ "2026-09-05T13:14:15.678901Z", 1788614055 * S + 678901000, 6 },
		{ "2100-03-01T00:00:00Z", 4107542400 * S, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char text[RFC3339_SIZE];
		struct err err = { 0 };
		uint64_t ns = 1;

		rfc3339_put(row->ns, row->digits, text);
		assert_string_equal(text, row->name);
		assert_int_equal(rfc3339_parse(bytes_str(row->name), &ns, &err), 0);
		assert_int_equal(ns, row->ns);
	}
}

static void every_day_has_its_own_name(void **state)
{
	char text[RFC3339_SIZE];
	struct err err = { 0 };

	(void)state;
	for (uint64_t day = 0; day < 365 * 230; day++) {
		uint64_t ns = 1;

		rfc3339_put(day * 86400 * S, 0, text);
		assert_int_equal(rfc3339_parse(bytes_str(text), &ns, &err), 0);
		assert_int_equal(ns, day * 86400 * S);
	}
}

static void other_spellings(void **state)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} rows[] = {
		{ "1970-01-01t01:00:00.5z", 3600 * S + S / 2 },
		{ "1970-01-01T01:00:00+01:00", 0 },
		{ "1970-01-01 00:00:00-00:30", 1800 * S },
		{ "1970-01-01T00:00:00.1234567899Z", 123456789 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct err err = { 0 };
		uint64_t ns = 1;

		assert_int_equal(rfc3339_parse(bytes_str(row->name), &ns, &err), 0);
		assert_int_equal(ns, row->ns);
	}
}

static void nonsense_is_refused(void **state)
{
	static const struct {
		const char *name;
	} rows[] = {
		{ "" },
		{ "2026-01-01" },
		{ "2026-01-01T00:00:00" },
		{ "2026-13-01T00:00:00Z" },
		{ "2026-02-29T00:00:00Z" },
		{ "2026-01-00T00:00:00Z" },
		{ "2026-01-01T24:00:00Z" },
		{ "2026-01-01T00:60:00Z" },
		{ "2026-01-01T00:00:60Z" },
		{ "2026-01-01T00:00:00.Z" },
		{ "2026-01-01T00:00:00Zx" },
		{ "2026-01-01T00:00:00+1:00" },
		{ "1969-12-31T23:59:59Z" },
		{ "1970-01-01T00:00:00+00:01" },
		{ "9999-01-01T00:00:00Z" },
		{ "1788614055" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct err err = { 0 };
		uint64_t ns;

		assert_int_equal(rfc3339_parse(bytes_str(row->name), &ns, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_times_go_both_ways),
		cmocka_unit_test(every_day_has_its_own_name),
		cmocka_unit_test(other_spellings),
		cmocka_unit_test(nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
