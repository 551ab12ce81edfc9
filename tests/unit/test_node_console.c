/* test_node_console.c - what the last words of a guest mean. */
#include "tests/unit/check.h"

#include "node/record/console.h"

static void lines_of_linux_are_told_apart(void **state)
{
	static const struct {
		const char *name, *text;
		enum console_end want;
	} rows[] = {
		{ "nothing", "", CONSOLE_NOTHING },
		{ "talk", "hello\nreboot\nKernel panic?\n", CONSOLE_NOTHING },
		{ "a restart", "[ 1.0] reboot: Restarting system\n", CONSOLE_RESTART },
		{ "no line end", "[ 1.0] reboot: Restarting system", CONSOLE_RESTART },
		{ "a panic", "[ 1.0] Kernel panic - not syncing: sysrq triggered crash\n[ 1.1] x\n",
		  CONSOLE_PANIC },
		{ "no memory",
		  "Kernel panic - not syncing: Out of memory: system-wide panic_on_oom is enabled",
		  CONSOLE_NO_MEMORY },
		{ "none to kill", "Kernel panic - not syncing: System is deadlocked on memory\n",
		  CONSOLE_NO_MEMORY },
		{ "killed before, panicked later",
		  "Out of memory: Killed process 7\nKernel panic - not syncing: Attempted to kill "
		  "init!\n",
		  CONSOLE_PANIC },
		{ "the last counts", "Kernel panic - not syncing: x\nreboot: Restarting system\n",
		  CONSOLE_RESTART },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		assert_int_equal(console_end_in(bytes_str(row->text)), row->want);
	}
}

static void an_answer_that_is_none_means_nothing(void **state)
{
	json_t *text = json_string("S2VybmVsIHBhbmljIC0gbm90IHN5bmNpbmc="), *bad = json_string("!");
	json_t *none = json_object();

	(void)state;
	assert_int_equal(console_end_of(text), CONSOLE_PANIC);
	assert_int_equal(console_end_of(bad), CONSOLE_NOTHING);
	assert_int_equal(console_end_of(none), CONSOLE_NOTHING);
	json_decref(text);
	json_decref(bad);
	json_decref(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_linux_are_told_apart),
		cmocka_unit_test(an_answer_that_is_none_means_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
