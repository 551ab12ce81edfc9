/* test_vm_save_copier.c - a save with a copier that fails, lies or breaks the rules. */
#include "tests/unit/vm_save_scene.h"

static void a_copier_may_fail_and_its_words_are_told(void **state)
{
	struct copier c = honest;

	(void)state;
	for (int verb = COPIER_FIRST; verb <= COPIER_SYNC; verb++) {
		c = honest;
		c.answer[verb] = (struct copier_reply){ .code = ERR_EXHAUSTED, .sys = ENOSPC };
		snprintf(c.answer[verb].msg, sizeof(c.answer[verb].msg), "no\nroom\x1b[2J");
		scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &c);
		assert_int_equal(s.done, 1);
		assert_int_equal(s.err.code, ERR_EXHAUSTED);
		assert_int_equal(s.err.sys, ENOSPC);
		assert_string_equal(s.err.msg, "save: copier: no?room?[2J");
		if (verb == COPIER_FIRST) {
			assert_int_equal(s.machine.life.state, VM_RUNNING);
			scene_end();
			continue;
		}
		assert_int_equal(s.machine.life.state, VM_PAUSED);
		let_go_on();
		assert_int_equal(s.machine.life.state, VM_RUNNING);
		scene_end();
	}
}

static void the_lies_of_a_copier_are_a_failure(void **state)
{
	static const struct {
		const char *name;
		struct copier_reply copy, sync;
	} rows[] = {
		{ "too many pages",
		  { .pages = UINT64_MAX, .pages_bytes = 1, .state_bytes = 1 },
		  GOOD },
		{ "too many zero pages",
		  { .zero_pages = 1ull << 40, .pages_bytes = 1, .state_bytes = 1 },
		  GOOD },
		{ "too many bytes", { .pages_bytes = UINT64_MAX, .state_bytes = 1 }, GOOD },
		{ "no pages file", { .state_bytes = 1 }, GOOD },
		{ "no state", { .pages_bytes = 1 }, GOOD },
		{ "too much state",
		  { .pages_bytes = 1, .state_bytes = (uint64_t)COPIER_STATE_MAX + 1 },
		  GOOD },
		{ "another length",
		  GOOD,
		  { .pages = 20, .zero_pages = 3, .pages_bytes = 1, .state_bytes = 150000 } },
		{ "no sum",
		  GOOD,
		  { .pages = 20, .zero_pages = 3, .pages_bytes = 90000, .state_bytes = 150000 } },
		{ "unknown failure", { .code = 4711, .sys = -1 }, GOOD },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		const struct copier c = { .answer = { GOOD, GOOD, row->copy, row->sync } };

		scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &c);
		assert_int_equal(s.done, 1);
		if (s.err.code != ERR_INVALID && s.err.code != ERR_INTERNAL)
			fail_msg("%s: %s", row->name, s.err.msg);
		assert_int_equal(s.machine.life.state, VM_PAUSED);
		scene_end();
	}
}

static void words_without_an_end_are_cut(void **state)
{
	struct copier c = honest;

	(void)state;
	c.answer[0].code = ERR_INTERNAL;
	memset(c.answer[0].msg, 'x', sizeof(c.answer[0].msg));
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &c);
	assert_int_equal(s.done, 1);
	assert_true(strlen(s.err.msg) < sizeof(s.err.msg));
	scene_end();
}

static void a_copier_that_breaks_the_rules_is_a_failure(void **state)
{
	static const struct {
		const char *name;
		struct copier c;
		bool stopped; /* the guest */
	} rows[] = {
		{ "too short", { .answer = ALL_GOOD, .length = 8 }, false },
		{ "too long",
		  { .answer = ALL_GOOD, .length = sizeof(struct copier_reply) + 1 },
		  false },
		{ "ends at the first pass",
		  { .answer = ALL_GOOD, .end_at = COPIER_FIRST + 1 },
		  false },
		{ "ends at the device state",
		  { .answer = ALL_GOOD, .end_at = COPIER_STATE + 1 },
		  true },
		{ "ends at the copy", { .answer = ALL_GOOD, .end_at = COPIER_COPY + 1 }, true },
		{ "ends at the sync", { .answer = ALL_GOOD, .end_at = COPIER_SYNC + 1 }, true },
		{ "speaks unasked", { .answer = ALL_GOOD, .speaks_first = true }, false },
		{ "was never there", { .answer = ALL_GOOD, .ends_first = true }, false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &row->c);
		assert_int_equal(s.done, 1);
		assert_int_not_equal(s.err.code, ERR_NONE);
		if ((s.machine.life.state == VM_PAUSED) != row->stopped)
			fail_msg("%s: %s", row->name, vm_state_name(s.machine.life.state));
		assert_ptr_equal(s.machine.user, &s.owner);
		scene_end();
	}
}

/* Its second answer comes when nothing is asked, or is taken for that to the next question. */
static void a_copier_that_answers_twice_is_a_failure(void **state)
{
	struct copier c = honest;

	(void)state;
	c.twice_at = COPIER_STATE + 1;
	c.answer[COPIER_SYNC].pages_crc++; /* told apart */
	s.sync_later = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &c);
	if (s.done == 0)
		loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_non_null(strstr(s.err.msg, "what nobody asked"));
	scene_end();
}

/* Its end is not the end of a command that QEMU has yet to answer. */
static void a_copier_may_end_while_qemu_is_asked(void **state)
{
	char answer[64];

	(void)state;
	scene_open(&(struct mock_qemu){ .mute_at = "xen-save-devices-state" }, agent_routes,
		   COUNT(agent_routes));
	scene_save(&honest);
	while (!mock_qemu_heard(&s.qemu, "xen-save-devices-state"))
		assert_true(loop_turn(s.loop));
	copier_end();
	while (s.save.broken.code == ERR_NONE)
		assert_true(loop_turn(s.loop));
	assert_int_equal(s.done, 0);
	snprintf(answer, sizeof(answer), "{\"return\": {}, \"id\": %llu}\r\n",
		 (unsigned long long)s.save.call.id);
	mock_qemu_say(&s.qemu, answer);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_UNAVAILABLE);
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	scene_end();
}

static void a_copier_that_is_silent_runs_out_of_time(void **state)
{
	struct copier c = honest;

	(void)state;
	c.mute_at = COPIER_COPY + 1;
	scene_open(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	scene_save(&c);
	while (s.n_asked < 2)
		assert_true(loop_turn(s.loop));
	assert_true(s.save.copier.deadline.active);
	timer_start(&s.save.copier.deadline, 0); /* time is not waited for */
	loop_run(s.loop);
	assert_int_equal(s.err.code, ERR_TIMEOUT);
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copier_may_fail_and_its_words_are_told),
		cmocka_unit_test(the_lies_of_a_copier_are_a_failure),
		cmocka_unit_test(words_without_an_end_are_cut),
		cmocka_unit_test(a_copier_that_breaks_the_rules_is_a_failure),
		cmocka_unit_test(a_copier_that_answers_twice_is_a_failure),
		cmocka_unit_test(a_copier_may_end_while_qemu_is_asked),
		cmocka_unit_test(a_copier_that_is_silent_runs_out_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
