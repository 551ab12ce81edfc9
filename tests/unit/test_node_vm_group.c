/* test_node_vm_group.c - what the kernel says of a VM's end, processor and memory. */

#include "tests/unit/check.h"

#include "base/bytes.h"
#include "node/record/vm_group.h"

static void numbers_are_found_by_name(void **state)
{
	static const char text[] = "oom 3\noom_kill 2\nfile_mapped 7\nfile 9\nbad x\nlast 1";
	uint64_t n = 0;

	(void)state;
	assert_true(vm_group_number(text, "oom_kill", &n));
	assert_int_equal(n, 2);
	assert_true(vm_group_number(text, "file", &n));
	assert_int_equal(n, 9);
	assert_false(vm_group_number(text, "bad", &n));
	assert_false(vm_group_number(text, "last", &n)); /* cut off */
	assert_false(vm_group_number(text, "", &n));
	assert_false(vm_group_number("", "file", &n));
}

static void ticks_are_found_behind_any_name(void **state)
{
	static const struct {
		const char *name, *stat;
		bool ok;
		uint64_t ticks;
	} rows[] = {
		{ "plain", "7 (qemu) S 1 7 7 0 -1 4194304 1 2 3 4 50 6 0 0 20 0", true, 56 },
		{ "a name with brackets", "7 (a) R 9 (b) S 1 7 7 0 -1 4194304 1 2 3 4 5 60 0 0 20",
		  true, 65 },
		{ "cut off", "7 (qemu) S 1 7 7 0 -1 4194304 1 2 3 4 50", false, 0 },
		{ "no name", "7 S 1", false, 0 },
		{ "nothing", "", false, 0 },
		{ "no number", "7 (q) S 1 7 7 0 -1 4194304 1 2 3 4 x 6 0 0 20 0", false, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		uint64_t ticks = 0;

		assert_int_equal(vm_group_ticks(row->stat, &ticks), row->ok);
		if (row->ok)
			assert_int_equal(ticks, row->ticks);
	}
}

static void a_group_that_is_not_there_is_no_reason(void **state)
{
	struct vm_groups g;
	struct vm_usage usage;
	struct err err;

	(void)state;
	vm_groups_open(&g, "hotcell-no-such-group");
	assert_false(vm_group_out_of_memory(&g, "x"));
	assert_int_equal(vm_group_measure(&g, "x", &usage, &err), -1);
	vm_groups_open(&g, "");
	assert_false(vm_group_out_of_memory(&g, "x"));
	assert_int_equal(vm_groups_folders(&g, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_found_by_name),
		cmocka_unit_test(ticks_are_found_behind_any_name),
		cmocka_unit_test(a_group_that_is_not_there_is_no_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
