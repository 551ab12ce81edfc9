/* test_vm_save.c - a save and a thaw: the order, every fault of the guest and of QEMU. */
#include "tests/unit/vm_save_scene.h"

/* --- a good end --------------------------------------------------------------------------- */

static void it_is_frozen_stopped_copied_and_durable(void **state)
{
	static const char *const order[] = { "qmp_capabilities", "stop", "xen-save-devices-state" };
	static const char *const steps[] = { "reached", "frozen", "stop",   "stopped",
					     "state",   "copied", "durable" };
	uint64_t before = 0, at;

	(void)state;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &honest);
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_int_equal(s.copied, 1);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.qemu.n_commands, COUNT(order));
	for (size_t i = 0; i < COUNT(order); i++)
		assert_string_equal(s.qemu.commands[i], order[i]);
	assert_non_null(strstr(s.qemu.saved, "\"filename\": \"/vm/state\"")
				?: strstr(s.qemu.saved, "\"filename\":\"/vm/state\""));
	for (size_t i = 0; i < COUNT(steps); i++) {
		at = steps_find(&s.machine.steps, steps[i]);
		if (at <= before)
			fail_msg("no time for %s", steps[i]);
		before = at;
	}
	assert_string_equal(s.agent.log[0], "POST /control/freeze");
	assert_non_null(memmem(s.agent.head.ptr, s.agent.head.len, s.identity.control_token,
			       strlen(s.identity.control_token)));
	assert_int_equal(s.n_asked, 4);
	assert_int_equal(s.asked[0], COPIER_FIRST);
	assert_int_equal(s.asked[1], COPIER_COPY);
	assert_int_equal(s.asked[2], COPIER_STATE);
	assert_int_equal(s.asked[3], COPIER_SYNC);
	assert_true(s.result.frozen && s.result.stopped_us > 0);
	assert_int_equal(s.result.copied.pages, 20);
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	assert_ptr_equal(s.machine.user, &s.owner);
	assert_null(s.save.user);
	scene_end();
}

/* A copier that comes late: the guest has frozen long before, and runs until the first pass. */
static void it_runs_until_the_first_pass_is_over(void **state)
{
	struct copier mute = honest;

	(void)state;
	mute.mute_at = COPIER_FIRST + 1;
	scene_open(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	scene_save(&mute);
	while (s.n_asked == 0 || steps_find(&s.machine.steps, "frozen") == 0)
		assert_true(loop_turn(s.loop));
	assert_false(mock_qemu_heard(&s.qemu, "stop"));
	copier_say(&s.copier.answer[COPIER_FIRST]);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.n_asked, 4);
	scene_end();
}

/* Nobody is frozen while much is copied. */
static void one_that_must_freeze_runs_meanwhile(void **state)
{
	struct copier mute = honest;

	(void)state;
	s.must_freeze = true;
	mute.mute_at = COPIER_FIRST + 1;
	scene_open(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	scene_save(&mute);
	while (s.n_asked == 0)
		assert_true(loop_turn(s.loop));
	for (int i = 0; i < 20; i++) { /* nothing more is under way */
		timer_init(&s.later, s.loop, on_later);
		timer_start(&s.later, 1);
		loop_run(s.loop);
	}
	assert_int_equal(steps_find(&s.machine.steps, "reached"), 0);
	copier_say(&s.copier.answer[COPIER_FIRST]);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_true(s.result.frozen);
	scene_end();
}

/* The guest may run again while what was copied becomes durable. */
static void it_may_go_on_before_it_is_durable(void **state)
{
	(void)state;
	s.sync_later = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &honest);
	assert_int_equal(s.copied, 1);
	assert_int_equal(s.done, 0);
	let_go_on();
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	save_sync(&s.save);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	scene_end();
}

static void without_memory_the_disk_is_written_back(void **state)
{
	(void)state;
	s.disk_only = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &honest);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.copied, 1);
	assert_int_equal(s.done, 1);
	assert_string_equal(s.agent.log[0], "POST /control/freeze?flush=1");
	assert_false(mock_qemu_heard(&s.qemu, "xen-save-devices-state"));
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	assert_true(s.result.frozen);
	scene_end();
}

/* A step of a build: what was not written back would be lacking. */
static void a_disk_that_must_be_written_back_or_nothing(void **state)
{
	static const struct mock_route no[] = { { "POST /control/freeze",
						  "HTTP/1.1 504 Late\r\n" MOCK_LENGTH("0") } };

	(void)state;
	s.disk_only = s.must_freeze = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &honest);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_string_equal(s.agent.log[0], "POST /control/freeze?flush=1");
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	scene_end();
	s.disk_only = s.must_freeze = true;
	scene_run(&(struct mock_qemu){ 0 }, no, COUNT(no), &honest);
	assert_int_equal(s.err.code, ERR_UNAVAILABLE);
	assert_int_equal(s.copied, 0);
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	scene_end();
}

/* One that an earlier node left: whether it runs is not known here. */
static void one_that_was_adopted_is_saved_and_thawed_too(void **state)
{
	struct err err;

	(void)state;
	scene_open(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	s.machine.life.state = VM_STARTING; /* as machine_connect() leaves it */
	scene_save(&honest);
	loop_run(s.loop);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	s.machine.life.state = VM_STARTING;
	if (thaw_start(&s.thaw,
		       &(struct thaw_spec){ &s.machine, &s.agent.at, mock_socket(), &s.identity },
		       on_thawed, &err) < 0)
		fail_msg("%s", err.msg);
	loop_run(s.loop);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.machine.life.state, VM_RUNNING);
	scene_end();
}

/* --- the guest ---------------------------------------------------------------------------- */

static void whatever_the_guest_does_it_is_stopped(void **state)
{
	static const struct {
		const char *name;
		struct mock_route route;
	} rows[] = {
		{ "silent", { .request = "POST /control/freeze", .hang = true } },
		{ "no", { "POST /control/freeze", "HTTP/1.1 504 Late\r\n" MOCK_LENGTH("0") } },
		{ "garbage", { "POST /control/freeze", "what?\r\n\r\n" } },
		{ "ends", { .request = "POST /control/freeze", .answer = "H", .close = true } },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		const struct mock_route routes[] = { row->route };

		scene_run(&(struct mock_qemu){ 0 }, routes, 1, &honest);
		if (s.err.code != ERR_NONE)
			fail_msg("%s: %s", row->name, s.err.msg);
		assert_int_equal(s.done, 1);
		assert_false(s.result.frozen);
		assert_int_equal(s.machine.life.state, VM_PAUSED);
		scene_end();
	}
}

/* Of whom a copy is wanted. */
static void one_that_must_freeze_runs_on_when_it_does_not(void **state)
{
	static const struct {
		const char *name;
		struct mock_route route;
	} rows[] = {
		{ "no", { "POST /control/freeze", "HTTP/1.1 504 Late\r\n" MOCK_LENGTH("0") } },
		{ "garbage", { "POST /control/freeze", "what?\r\n\r\n" } },
		{ "ends", { .request = "POST /control/freeze", .answer = "H", .close = true } },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		const struct mock_route routes[] = { row->route };

		s.must_freeze = true;
		scene_run(&(struct mock_qemu){ 0 }, routes, 1, &honest);
		assert_int_equal(s.err.code, ERR_UNAVAILABLE);
		assert_non_null(strstr(s.err.msg, "do not stop"));
		assert_int_equal(s.done, 1);
		assert_int_equal(s.machine.life.state, VM_RUNNING);
		scene_end();
	}
	s.must_freeze = true;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &honest);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_true(s.result.frozen);
	assert_string_equal(s.agent.log[0], "POST /control/freeze?sure=1");
	scene_end();
	s.must_freeze = s.flush = true; /* its memory, and a disk that can be booted without it */
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &honest);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_true(mock_qemu_heard(&s.qemu, "xen-save-devices-state"));
	assert_string_equal(s.agent.log[0], "POST /control/freeze?flush=1");
	scene_end();
}

static void one_that_cannot_be_reached_is_stopped_too(void **state)
{
	(void)state;
	scene_open(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	listener_close(&s.agent.door);
	scene_save(&honest);
	loop_run(s.loop);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.done, 1);
	assert_false(s.result.frozen);
	scene_end();
}

/* --- QEMU --------------------------------------------------------------------------------- */

static void qemu_may_refuse_and_the_guest_goes_on(void **state)
{
	static const struct {
		const char *name;
		enum vm_state left;
	} rows[] = { { "stop", VM_RUNNING }, { "xen-save-devices-state", VM_PAUSED } };

	(void)state;
	FOR_ROWS(row, rows) {
		scene_run(&(struct mock_qemu){ .error_at = row->name }, agent_routes,
			  COUNT(agent_routes), &honest);
		assert_int_equal(s.done, 1);
		assert_int_equal(s.copied, 0);
		assert_int_equal(s.err.code, ERR_INVALID);
		assert_non_null(strstr(s.err.msg, row->name));
		assert_int_equal(s.machine.life.state, row->left);
		assert_ptr_equal(s.machine.user, &s.owner);
		assert_true(s.n_asked <= 2); /* never for the device state */
		let_go_on();
		assert_int_equal(s.err.code, ERR_NONE);
		assert_int_equal(s.machine.life.state, VM_RUNNING);
		scene_end();
	}
}

static void qemu_may_end_at_any_command(void **state)
{
	static const struct {
		const char *name;
	} rows[] = { { "stop" }, { "xen-save-devices-state" } };

	(void)state;
	FOR_ROWS(row, rows) {
		scene_run(&(struct mock_qemu){ .die_at = row->name }, agent_routes,
			  COUNT(agent_routes), &honest);
		assert_int_equal(s.done, 1);
		assert_int_equal(s.err.code, ERR_UNAVAILABLE);
		assert_int_equal(s.machine.life.state, VM_GONE);
		assert_int_equal(s.owner_gone, 0);
		scene_end();
	}
}

static void qemu_may_end_while_pages_are_copied(void **state)
{
	struct copier mute = honest;

	(void)state;
	mute.mute_at = COPIER_COPY + 1;
	scene_open(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes));
	scene_save(&mute);
	while (s.n_asked < 2)
		assert_true(loop_turn(s.loop));
	mock_qemu_close(&s.qemu);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_UNAVAILABLE);
	assert_int_equal(s.machine.life.state, VM_GONE);
	scene_end();
}

/* --- going on ----------------------------------------------------------------------------- */

static void a_thaw_sets_the_clock_and_keeps_the_connections(void **state)
{
	(void)state;
	scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &honest);
	let_go_on();
	assert_int_equal(s.err.code, ERR_NONE);
	assert_true(mock_qemu_heard(&s.qemu, "cont"));
	assert_non_null(memmem(s.agent.told.ptr, s.agent.told.len, "\"resume\":true", 13));
	assert_non_null(memmem(s.agent.told.ptr, s.agent.told.len, "\"inPlace\":true", 14));
	assert_ptr_equal(s.machine.user, &s.owner);
	scene_end();
}

static void a_thaw_that_fails_says_so(void **state)
{
	static const struct mock_route deaf[] = {
		{ "POST /control/identity", "HTTP/1.1 403 No\r\n" MOCK_LENGTH("0") },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	scene_run(&(struct mock_qemu){ 0 }, deaf, COUNT(deaf), &honest);
	let_go_on();
	assert_int_equal(s.err.code, ERR_INTERNAL);
	scene_end();
	scene_run(&(struct mock_qemu){ .error_at = "cont" }, agent_routes, COUNT(agent_routes),
		  &honest);
	let_go_on();
	assert_int_equal(s.err.code, ERR_INVALID);
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	scene_end();
	scene_run(&(struct mock_qemu){ .die_at = "cont" }, agent_routes, COUNT(agent_routes),
		  &honest);
	let_go_on();
	assert_int_equal(s.err.code, ERR_UNAVAILABLE);
	scene_end();
}

/* --- cancelling --------------------------------------------------------------------------- */

static void cancel(struct timer *t)
{
	(void)t;
	save_cancel(&s.save);
	thaw_cancel(&s.thaw);
	loop_stop(s.loop);
}

/* At whatever moment: no callback, and nothing is left (the sanitizer sees). */
static void it_may_be_cancelled_at_any_time(void **state)
{
	static const struct mock_route slow[] = {
		{ .request = "POST /control/freeze", .answer = MOCK_NO_CONTENT, .delay_ms = 10 },
		MOCK_AGENT_ROUTES,
	};
	struct copier mute = honest;

	(void)state;
	mute.mute_at = COPIER_COPY + 1;
	for (uint64_t ms = 0; ms < 30; ms += 2) {
		scene_open(&(struct mock_qemu){ 0 }, slow, COUNT(slow));
		scene_save(&mute);
		timer_init(&s.later, s.loop, cancel);
		timer_start(&s.later, ms);
		loop_run(s.loop);
		assert_int_equal(s.done, 0);
		assert_null(s.save.user);
		scene_end();
	}
}

static void a_thaw_may_be_cancelled_at_any_time(void **state)
{
	static const struct mock_route slow[] = {
		{ .request = "GET /control/clock", .delay_ms = 10 },
		{ .request = "POST /control/identity", .delay_ms = 2000 },
		MOCK_AGENT_ROUTES,
	};
	struct err err;

	(void)state;
	for (uint64_t ms = 0; ms < 20; ms += 2) {
		scene_run(&(struct mock_qemu){ 0 }, slow, COUNT(slow), &honest);
		assert_int_equal(thaw_start(&s.thaw,
					    &(struct thaw_spec){ &s.machine, &s.agent.at,
								 mock_socket(), &s.identity },
					    on_thawed, &err),
				 0);
		timer_init(&s.later, s.loop, cancel);
		timer_start(&s.later, ms);
		loop_run(s.loop);
		assert_int_equal(s.thawed, 0);
		scene_end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_frozen_stopped_copied_and_durable),
		cmocka_unit_test(it_runs_until_the_first_pass_is_over),
		cmocka_unit_test(one_that_must_freeze_runs_meanwhile),
		cmocka_unit_test(it_may_go_on_before_it_is_durable),
		cmocka_unit_test(a_disk_that_must_be_written_back_or_nothing),
		cmocka_unit_test(without_memory_the_disk_is_written_back),
		cmocka_unit_test(one_that_was_adopted_is_saved_and_thawed_too),
		cmocka_unit_test(whatever_the_guest_does_it_is_stopped),
		cmocka_unit_test(one_that_must_freeze_runs_on_when_it_does_not),
		cmocka_unit_test(one_that_cannot_be_reached_is_stopped_too),
		cmocka_unit_test(qemu_may_refuse_and_the_guest_goes_on),
		cmocka_unit_test(qemu_may_end_at_any_command),
		cmocka_unit_test(qemu_may_end_while_pages_are_copied),
		cmocka_unit_test(a_thaw_sets_the_clock_and_keeps_the_connections),
		cmocka_unit_test(a_thaw_that_fails_says_so),
		cmocka_unit_test(it_may_be_cancelled_at_any_time),
		cmocka_unit_test(a_thaw_may_be_cancelled_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
