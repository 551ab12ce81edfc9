/* test_vm_restore.c - a restore against a mock QEMU and a mock agent: the order, and every fault.
 */
#include "tests/unit/vm_mock_agent.h"
#include "tests/unit/vm_mock_qemu.h"

#include "vm/restore.h"

enum { GUARD_MS = 30000 };

static struct scene {
	struct loop *loop;
	struct mock_qemu qemu;
	struct mock_agent agent;
	struct timer guard, later;
	struct machine machine;
	struct restore restore;
	struct restore_user user;
	struct agent_identity identity;
	struct agent_clock clock;
	bool no_socket, hold, nameless, apply, boot, resume;
	int wanted, to_apply, held, waiting, done;
	struct err err;
} s;

static const struct mock_route agent_routes[] = { MOCK_AGENT_ROUTES };

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static void want_apply(struct restore_user *u)
{
	(void)u;
	s.to_apply++;
	assert_true(steps_find(&s.machine.steps, "greeting") > 0);
	assert_false(mock_qemu_heard(&s.qemu, "migrate-incoming"));
	loop_stop(s.loop);
}

static void want_socket(struct restore_user *u)
{
	(void)u;
	s.wanted++;
	if (!s.no_socket)
		restore_socket(&s.restore, mock_socket());
}

static void on_held(struct restore_user *u)
{
	(void)u;
	s.held++;
	loop_stop(s.loop);
}

static void on_done(struct restore_user *u, const struct agent_clock *clock, const struct err *err)
{
	(void)u;
	assert_true((clock == NULL) == (err != NULL));
	s.done++;
	if (err)
		s.err = *err;
	else
		s.clock = *clock;
	loop_stop(s.loop);
}

static void on_waiting(struct restore_user *u)
{
	(void)u;
	s.waiting++;
	loop_stop(s.loop);
}

static void scene_start(const struct mock_qemu *qemu, const struct mock_route *routes, size_t n)
{
	static const struct restore_user_ops ops = { want_apply, want_socket, on_held, on_done,
						     on_waiting };
	struct restore_spec spec = { .user = &s.user,
				     .state_uri = "file:/dev/fdset/3",
				     .hold = s.hold,
				     .apply = s.apply,
				     .boot = s.boot,
				     .check_health = true };
	struct err err;

	s.qemu = *qemu;
	assert_int_equal(loop_open(&s.loop, &err), 0);
	mock_qemu_start(&s.qemu, s.loop);
	mock_agent_start(&s.agent, s.loop, routes, n);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	assert_int_equal(
		agent_identity_make(&s.identity, BYTES_LIT("box-1"), BYTES_LIT("base"), &err), 0);
	s.identity.resume = s.resume;
	spec.qmp_path = s.qemu.path;
	spec.agent = s.agent.at;
	spec.identity = s.nameless ? NULL : &s.identity;
	s.user.ops = &ops;
	steps_begin(&s.machine.steps);
	if (restore_start(&s.restore, &s.machine, s.loop, &spec, &err) < 0)
		fail_msg("%s", err.msg);
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	timer_stop(&s.later);
	restore_cancel(&s.restore);
	machine_close(&s.machine);
	mock_qemu_end(&s.qemu);
	mock_agent_end(&s.agent);
	agent_identity_done(&s.identity);
	loop_free(s.loop);
	s = (struct scene){ 0 };
}

static void scene_run(const struct mock_qemu *qemu, const struct mock_route *routes, size_t n)
{
	scene_start(qemu, routes, n);
	loop_run(s.loop);
}

static void it_is_loaded_seen_paused_then_run(void **state)
{
	static const char *const order[] = { "qmp_capabilities", "migrate-set-capabilities",
					     "migrate-incoming", "query-status", "cont" };
	static const char *const steps[] = { "monitor",   "greeting", "loaded",   "paused", "cont",
					     "connected", "clock",    "identity", "health" };

	(void)state;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.wanted, 1);
	assert_int_equal(s.qemu.n_commands, COUNT(order));
	for (size_t i = 0; i < COUNT(order); i++)
		assert_string_equal(s.qemu.commands[i], order[i]);
	for (size_t i = 0; i < COUNT(steps); i++)
		if (steps_find(&s.machine.steps, steps[i]) == 0)
			fail_msg("no time for %s", steps[i]);
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	assert_int_equal(s.machine.qemu_major, 10);
	assert_null(s.restore.user);
	scene_end();
}

/* The promise: saved state says "running", and only our `cont` starts a guest. */
static void anything_but_paused_after_loading_is_refused(void **state)
{
	static const struct {
		const char *name;
	} rows[] = { { "running" }, { "prelaunch" }, { "inmigrate" }, { "shutdown" }, { "" } };

	(void)state;
	FOR_ROWS(row, rows) {
		scene_run(&(struct mock_qemu){ .status = row->name }, agent_routes,
			  COUNT(agent_routes));
		assert_int_equal(s.done, 1);
		assert_int_equal(s.err.code, ERR_INTERNAL);
		assert_non_null(strstr(s.err.msg, "after loading, not paused"));
		assert_false(mock_qemu_heard(&s.qemu, "cont"));
		assert_int_equal(s.agent.n_log, 0);
		assert_int_equal(s.machine.life.state, VM_GONE);
		scene_end();
	}
}

/* Its memory is in place before its devices are told what is in it. */
static void saved_pages_come_before_the_state(void **state)
{
	(void)state;
	s.apply = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	assert_int_equal(s.to_apply, 1);
	assert_int_equal(s.wanted, 1);
	assert_int_equal(s.qemu.n_commands, 1);
	restore_applied(&s.restore);
	loop_run(s.loop);
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.to_apply, 1);
	assert_true(steps_find(&s.machine.steps, "applied") > 0);
	assert_true(mock_qemu_heard(&s.qemu, "migrate-incoming"));
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	scene_end();
}

static void pages_that_do_not_come_are_a_failure(void **state)
{
	struct err err;

	(void)state;
	s.apply = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	err_set(&err, ERR_INVALID, 0, "the pages are broken");
	restore_fail(&s.restore, &err);
	assert_int_equal(s.done, 1);
	assert_string_equal(s.err.msg, "restore: the pages are broken");
	assert_false(mock_qemu_heard(&s.qemu, "cont"));
	assert_int_equal(s.machine.life.state, VM_GONE);
	scene_end();
}

/* One that resumes proves its host with the token it has, and is told no names. */
static void one_that_resumes_is_told_the_time_and_no_names(void **state)
{
	struct bytes head;

	(void)state;
	s.resume = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	assert_int_equal(s.err.code, ERR_NONE);
	head = buf_view(&s.agent.told_head);
	assert_non_null(memmem(head.ptr, head.len, s.identity.control_token,
			       strlen(s.identity.control_token)));
	assert_non_null(memmem(s.agent.told.ptr, s.agent.told.len, "\"resume\":true", 13));
	assert_non_null(memmem(s.agent.told.ptr, s.agent.told.len, "\"inPlace\":false", 15));
	assert_null(memmem(s.agent.told.ptr, s.agent.told.len, "accessToken", 11));
	assert_null(memmem(s.agent.told.ptr, s.agent.told.len, "hostname", 8));
	scene_end();
}

static void one_that_boots_is_not_loaded(void **state)
{
	static const char *const order[] = { "qmp_capabilities", "query-status", "cont" };

	(void)state;
	s.boot = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.qemu.n_commands, COUNT(order));
	for (size_t i = 0; i < COUNT(order); i++)
		assert_string_equal(s.qemu.commands[i], order[i]);
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	scene_end();
}

static void one_that_runs_before_it_was_booted_is_refused(void **state)
{
	static const struct {
		const char *name;
	} rows[] = { { "running" }, { "inmigrate" }, { "shutdown" }, { "" } };

	(void)state;
	FOR_ROWS(row, rows) {
		s.boot = true;
		scene_run(&(struct mock_qemu){ .status = row->name }, agent_routes,
			  COUNT(agent_routes));
		assert_int_equal(s.done, 1);
		assert_int_equal(s.err.code, ERR_INTERNAL);
		assert_false(mock_qemu_heard(&s.qemu, "cont"));
		scene_end();
	}
}

static void events_before_their_answer_change_nothing(void **state)
{
	(void)state;
	scene_run(&(struct mock_qemu){ .events_first = true }, agent_routes, COUNT(agent_routes));
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	scene_end();
}

static void held_it_waits_for_go(void **state)
{
	(void)state;
	s.hold = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	assert_int_equal(s.held, 1);
	assert_int_equal(s.done, 0);
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	assert_false(mock_qemu_heard(&s.qemu, "cont"));
	assert_int_equal(s.agent.n_conns, 0);
	restore_go(&s.restore);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	scene_end();
}

/* What a pool is made of: all but the last round trip has happened. */
static void without_an_identity_it_runs_and_waits(void **state)
{
	size_t asked;

	(void)state;
	s.nameless = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.waiting, 1);
	assert_int_equal(s.done, 0);
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	assert_false(s.restore.deadline.active);
	asked = s.agent.n_log;
	assert_string_equal(s.agent.log[asked - 1], "GET /control/clock");
	restore_identity(&s.restore, &s.identity);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_string_equal(s.agent.log[asked], "POST /control/identity");
	assert_null(s.restore.user);
	scene_end();
}

/* All of it but the thaw; the last message finds everything warm. */
static void it_may_rehearse_its_identity(void **state)
{
	size_t asked;

	(void)state;
	s.nameless = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	asked = s.agent.n_log;
	s.identity.stay_frozen = true;
	restore_rehearse(&s.restore, &s.identity);
	loop_run(s.loop);
	assert_int_equal(s.waiting, 2);
	assert_int_equal(s.done, 0);
	assert_string_equal(s.agent.log[asked], "POST /control/identity");
	assert_non_null(memmem(s.agent.body.ptr, s.agent.body.len, "\"stayFrozen\":true", 17));
	s.identity.stay_frozen = false;
	restore_identity(&s.restore, &s.identity);
	while (s.agent.n_log == asked + 1)
		assert_true(loop_turn(s.loop));
	assert_string_equal(s.agent.log[asked + 1], "POST /control/identity");
	assert_non_null(memmem(s.agent.body.ptr, s.agent.body.len, "\"stayFrozen\":false", 18));
	if (s.done == 0)
		loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_NONE);
	scene_end();
}

/* Clocks drift apart while it waits. Time is not waited for: the timer is told to fire now. */
static void while_it_waits_its_clock_is_kept_fresh(void **state)
{
	size_t asked;

	(void)state;
	s.nameless = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	asked = s.agent.n_log;
	assert_true(s.restore.wake.refresh.active);
	timer_start(&s.restore.wake.refresh, 0);
	while (s.agent.n_log == asked || s.restore.wake.busy)
		assert_true(loop_turn(s.loop));
	assert_string_equal(s.agent.log[asked], "GET /control/clock");
	assert_int_equal(s.waiting, 1);
	assert_true(s.restore.wake.refresh.active);
	/* an identity that comes while it is being asked waits for the answer */
	asked = s.agent.n_log;
	timer_start(&s.restore.wake.refresh, 0);
	while (!s.restore.wake.busy)
		assert_true(loop_turn(s.loop));
	restore_identity(&s.restore, &s.identity);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_string_equal(s.agent.log[asked], "GET /control/clock");
	assert_string_equal(s.agent.log[s.agent.n_log - 2], "POST /control/identity");
	scene_end();
}

static void a_machine_that_ends_while_it_waits_is_a_failure(void **state)
{
	(void)state;
	s.nameless = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	assert_int_equal(s.waiting, 1);
	mock_qemu_end(&s.qemu);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_UNAVAILABLE);
	assert_int_equal(s.machine.life.state, VM_GONE);
	scene_end();
}

static void bring_socket(struct timer *t)
{
	(void)t;
	restore_socket(&s.restore, mock_socket());
}

static void a_socket_may_come_late(void **state)
{
	(void)state;
	s.no_socket = true;
	scene_start(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	timer_init(&s.later, s.loop, bring_socket);
	timer_start(&s.later, 100);
	loop_run(s.loop);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_true(steps_find(&s.machine.steps, "socket") > steps_find(&s.machine.steps, "cont"));
	scene_end();
}

static void the_caller_may_fail_it(void **state)
{
	struct err err;

	(void)state;
	s.no_socket = true;
	s.hold = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	err_set(&err, ERR_EXHAUSTED, 0, "no socket");
	restore_fail(&s.restore, &err);
	assert_int_equal(s.done, 1);
	assert_string_equal(s.err.msg, "restore: no socket");
	assert_int_equal(s.machine.life.state, VM_GONE);
	scene_end();
}

static void every_command_may_fail(void **state)
{
	static const struct {
		const char *name;
	} rows[] = { { "qmp_capabilities" },
		     { "migrate-set-capabilities" },
		     { "migrate-incoming" },
		     { "query-status" },
		     { "cont" } };

	(void)state;
	FOR_ROWS(row, rows) {
		scene_run(&(struct mock_qemu){ .error_at = row->name }, agent_routes,
			  COUNT(agent_routes));
		assert_int_equal(s.done, 1);
		assert_int_equal(s.err.code, ERR_INVALID);
		assert_non_null(strstr(s.err.msg, row->name));
		assert_int_equal(s.machine.life.state, VM_GONE);
		scene_end();
		scene_run(&(struct mock_qemu){ .die_at = row->name }, agent_routes,
			  COUNT(agent_routes));
		assert_int_equal(s.done, 1);
		assert_int_equal(s.err.code, ERR_UNAVAILABLE);
		assert_int_equal(s.machine.life.state, VM_GONE);
		scene_end();
	}
}

static void state_that_cannot_be_loaded_is_a_failure(void **state)
{
	(void)state;
	scene_run(&(struct mock_qemu){ .load = "failed" }, agent_routes, COUNT(agent_routes));
	assert_int_equal(s.done, 1);
	assert_non_null(strstr(s.err.msg, "could not load"));
	assert_false(mock_qemu_heard(&s.qemu, "cont"));
	scene_end();
}

/* Fail closed: a machine that did not take its identity is not handed out. */
static void without_its_identity_it_is_a_failure(void **state)
{
	static const struct mock_route routes[] = {
		{ "POST /control/identity", "HTTP/1.1 500 No\r\n" MOCK_LENGTH("0") },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	scene_run(&(struct mock_qemu){ 0 }, routes, COUNT(routes));
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_INTERNAL);
	assert_int_equal(s.machine.life.state, VM_GONE);
	scene_end();
}

static void cancel(struct timer *t)
{
	(void)t;
	restore_cancel(&s.restore);
	loop_stop(s.loop);
}

/* At whatever moment it is cancelled: no callback, and nothing is left (the sanitizer sees). */
static void it_may_be_cancelled_at_any_time(void **state)
{
	static const struct mock_route slow[] = {
		{ .request = "GET /control/clock", .delay_ms = 60 },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	for (uint64_t ms = 0; ms < 40; ms += 2) {
		scene_start(&(struct mock_qemu){ 0 }, slow, COUNT(slow));
		timer_init(&s.later, s.loop, cancel);
		timer_start(&s.later, ms);
		loop_run(s.loop);
		assert_int_equal(s.done, 0);
		assert_int_equal(s.machine.life.state, VM_GONE);
		scene_end();
	}
}

static void no_qemu_is_a_failure(void **state)
{
	(void)state;
	scene_start(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	listener_close(&s.qemu.door);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_UNAVAILABLE);
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_loaded_seen_paused_then_run),
		cmocka_unit_test(anything_but_paused_after_loading_is_refused),
		cmocka_unit_test(saved_pages_come_before_the_state),
		cmocka_unit_test(pages_that_do_not_come_are_a_failure),
		cmocka_unit_test(one_that_resumes_is_told_the_time_and_no_names),
		cmocka_unit_test(one_that_boots_is_not_loaded),
		cmocka_unit_test(one_that_runs_before_it_was_booted_is_refused),
		cmocka_unit_test(events_before_their_answer_change_nothing),
		cmocka_unit_test(held_it_waits_for_go),
		cmocka_unit_test(without_an_identity_it_runs_and_waits),
		cmocka_unit_test(it_may_rehearse_its_identity),
		cmocka_unit_test(while_it_waits_its_clock_is_kept_fresh),
		cmocka_unit_test(a_machine_that_ends_while_it_waits_is_a_failure),
		cmocka_unit_test(a_socket_may_come_late),
		cmocka_unit_test(the_caller_may_fail_it),
		cmocka_unit_test(every_command_may_fail),
		cmocka_unit_test(state_that_cannot_be_loaded_is_a_failure),
		cmocka_unit_test(without_its_identity_it_is_a_failure),
		cmocka_unit_test(it_may_be_cancelled_at_any_time),
		cmocka_unit_test(no_qemu_is_a_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
