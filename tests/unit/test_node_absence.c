/* test_node_absence.c - when one whose VM is not to be seen is taken for lost. */
#include "tests/unit/check.h"

#include "node/recovery/absence.h"

enum { FIRST_MS = 5000, MINUTE_MS = FIRST_MS + ABSENT_AGAIN_MS };

static void when_one_is_lost(void **state)
{
	static const struct {
		const char *name;
		struct absent absent;
		bool lives;
		uint64_t now_ms;
		size_t n_absent, n_all;
		enum absent_end end;
	} rows[] = {
		{ "alone", { FIRST_MS }, false, FIRST_MS, 1, 1, ABSENT_LOST },
		{ "a few, all there are", { FIRST_MS }, false, FIRST_MS, 8, 8, ABSENT_LOST },
		{ "many at once", { FIRST_MS }, false, FIRST_MS, 9, 1000, ABSENT_WAITS },
		{ "another look too early",
		  { FIRST_MS },
		  false,
		  MINUTE_MS - 1,
		  9,
		  1000,
		  ABSENT_WAITS },
		{ "a second look", { FIRST_MS }, false, MINUTE_MS, 9, 1000, ABSENT_LOST },
		{ "a second look, a tenth", { FIRST_MS }, false, MINUTE_MS, 10, 100, ABSENT_LOST },
		{ "more than a tenth", { FIRST_MS }, false, MINUTE_MS, 11, 100, ABSENT_KEPT },
		{ "many, all there are", { FIRST_MS }, false, MINUTE_MS, 9, 9, ABSENT_KEPT },
		{ "kept, and fewer by now",
		  { FIRST_MS, .kept = true },
		  false,
		  MINUTE_MS,
		  1,
		  1000,
		  ABSENT_KEPT },
		{ "its QEMU talks", { FIRST_MS }, true, FIRST_MS, 1, 1000, ABSENT_WAITS },
		{ "its QEMU still talks", { FIRST_MS }, true, MINUTE_MS, 1, 1000, ABSENT_KEPT },
	};

	(void)state;
	FOR_ROWS(row, rows)
		assert_int_equal(absent_end_of(&row->absent, row->lives, row->now_ms, row->n_absent,
					       row->n_all),
				 row->end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(when_one_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
