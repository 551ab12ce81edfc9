/* test_vm_save.c - a save and a thaw against a mock QEMU, a mock agent and a copier made of bytes:
 * the order, every fault, and the lies of all three.
 */
#include "tests/unit/vm_mock_agent.h"
#include "tests/unit/vm_mock_qemu.h"

#include <errno.h>
#include <sys/socket.h>

#include "net/watch.h"
#include "vm/save.h"
#include "vm/thaw.h"

enum { GUARD_MS = 60000, LOOK_MS = 5 };

/* What the copier does with a request. */
struct copier {
	struct copier_reply answer[2]; /* to COPIER_COPY, to COPIER_SYNC */
	size_t length;                 /* of an answer; 0: what is right */
	int end_at, mute_at, twice_at; /* verb + 1: ends, says nothing, answers twice; 0: none */
	bool speaks_first, ends_first;
};

static struct scene {
	struct loop *loop;
	struct mock_qemu qemu;
	struct mock_agent agent;
	struct timer guard, later;
	struct machine machine;
	struct machine_user owner;
	struct save save;
	struct save_user user;
	struct thaw thaw;
	struct agent_identity identity;
	struct copier copier;
	struct watch copier_ready;
	int copier_fd;
	uint32_t asked[4];
	size_t n_asked;
	struct save_result result;
	bool disk_only, must_freeze, sync_later;
	int ready, owner_gone, copied, done, thawed;
	struct err err;
} s;

static const struct mock_route agent_routes[] = { MOCK_AGENT_ROUTES };

#define GOOD                     \
	{ .pages = 20,           \
	  .zero_pages = 3,       \
	  .pages_bytes = 90000,  \
	  .state_bytes = 150000, \
	  .pages_crc = 0x1234,   \
	  .state_crc = 0x5678,   \
	  .took_us = 900 }
static const struct copier honest = { .answer = { GOOD, GOOD } };

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

/* --- the copier --------------------------------------------------------------------------- */

static void copier_end(void)
{
	watch_close(&s.copier_ready);
	if (s.copier_fd >= 0)
		close(take_fd(&s.copier_fd));
}

static void copier_say(const struct copier_reply *r)
{
	char room[sizeof(*r) + 64] = { 0 };
	size_t n = s.copier.length ? s.copier.length : sizeof(*r);

	memcpy(room, r, sizeof(*r));
	assert_int_equal(send(s.copier_fd, room, n, MSG_NOSIGNAL), n);
}

static void on_request(struct watch *w, unsigned int events)
{
	struct copier_request rq;
	int verb;

	(void)w, (void)events;
	if (recv(s.copier_fd, &rq, sizeof(rq), MSG_DONTWAIT) != sizeof(rq)) {
		copier_end();
		return;
	}
	assert_int_equal(rq.version, COPIER_VERSION);
	assert_true(s.n_asked < COUNT(s.asked));
	s.asked[s.n_asked++] = rq.verb;
	verb = (int)rq.verb;
	if (s.copier.end_at == verb + 1) {
		copier_end();
		return;
	}
	if (s.copier.mute_at == verb + 1)
		return;
	copier_say(&s.copier.answer[verb]);
	if (s.copier.twice_at == verb + 1)
		copier_say(&s.copier.answer[verb]);
}

static int copier_start(void)
{
	int pair[2];
	struct err err;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	s.copier_fd = pair[1];
	if (s.copier.speaks_first)
		copier_say(&s.copier.answer[0]);
	if (s.copier.ends_first)
		close(take_fd(&s.copier_fd));
	else
		assert_int_equal(watch_open(&s.copier_ready, s.loop, s.copier_fd, WATCH_READ,
					    on_request, &err),
				 0);
	return pair[0];
}

/* --- the scene ---------------------------------------------------------------------------- */

static void on_copied(struct save_user *u, const struct save_result *r)
{
	(void)u;
	s.copied++;
	s.result = *r;
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	if (s.sync_later)
		loop_stop(s.loop);
	else
		save_sync(&s.save);
}

static void on_done(struct save_user *u, const struct save_result *r, const struct err *err)
{
	(void)u;
	s.done++;
	s.result = *r;
	if (err)
		s.err = *err;
	loop_stop(s.loop);
}

static void on_thawed(struct thaw *t, const struct err *err)
{
	(void)t;
	s.thawed++;
	s.err = err ? *err : (struct err){ 0 };
	loop_stop(s.loop);
}

static void on_owner_open(struct machine_user *u)
{
	(void)u;
}

static void on_owner_ready(struct machine_user *u)
{
	(void)u;
	s.ready++;
	loop_stop(s.loop);
}

static void on_owner_event(struct machine_user *u, const struct qmp_message *event)
{
	(void)u, (void)event;
}

static void on_owner_gone(struct machine_user *u, const struct err *err)
{
	(void)u, (void)err;
	s.owner_gone++;
	loop_stop(s.loop);
}

/* A sandbox that runs, as its owner sees it. */
static void scene_open(const struct mock_qemu *qemu, const struct mock_route *routes, size_t n)
{
	static const struct machine_user_ops ops = { on_owner_open, on_owner_ready, on_owner_event,
						     on_owner_gone };
	struct err err;

	s.qemu = *qemu;
	s.copier_fd = -1;
	assert_int_equal(loop_open(&s.loop, &err), 0);
	mock_qemu_start(&s.qemu, s.loop);
	mock_agent_start(&s.agent, s.loop, routes, n);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	assert_int_equal(
		agent_identity_make(&s.identity, BYTES_LIT("box-1"), BYTES_LIT("base"), &err), 0);
	s.identity.resume = true;
	s.owner.ops = &ops;
	steps_begin(&s.machine.steps);
	assert_int_equal(machine_connect(&s.machine, s.loop, s.qemu.path, &s.owner, &err), 0);
	loop_run(s.loop);
	assert_int_equal(s.ready, 1);
	vm_life_enter(&s.machine.life, VM_PAUSED);
	vm_life_enter(&s.machine.life, VM_RUNNING);
	s.qemu.running = true;
}

static void scene_save(const struct copier *copier)
{
	static const struct save_user_ops ops = { on_copied, on_done };
	struct save_spec spec = { .agent = s.agent.at,
				  .control_token = s.identity.control_token,
				  .save_file = "/vm/state",
				  .must_freeze = s.must_freeze,
				  .disk_only = s.disk_only };
	struct err err;

	s.copier = *copier;
	s.user.ops = &ops;
	if (save_start(&s.save, &s.machine, &spec, mock_socket(), s.disk_only ? -1 : copier_start(),
		       &s.user, &err) < 0)
		fail_msg("%s", err.msg);
}

static void scene_run(const struct mock_qemu *qemu, const struct mock_route *routes, size_t n,
		      const struct copier *copier)
{
	scene_open(qemu, routes, n);
	scene_save(copier);
	loop_run(s.loop);
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	timer_stop(&s.later);
	thaw_cancel(&s.thaw);
	save_cancel(&s.save);
	copier_end();
	machine_close(&s.machine);
	mock_qemu_end(&s.qemu);
	mock_agent_end(&s.agent);
	agent_identity_done(&s.identity);
	loop_free(s.loop);
	s = (struct scene){ 0 };
}

static void let_go_on(void)
{
	struct err err;

	if (thaw_start(&s.thaw, &s.machine, &s.agent.at, mock_socket(), &s.identity, on_thawed,
		       &err) < 0)
		fail_msg("%s", err.msg);
	loop_run(s.loop);
	assert_int_equal(s.thawed, 1);
}

/* --- a good end --------------------------------------------------------------------------- */

static void it_is_frozen_stopped_copied_and_durable(void **state)
{
	static const char *const order[] = { "qmp_capabilities", "stop", "xen-save-devices-state" };
	static const char *const steps[] = { "reached", "frozen", "stopped",
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
	assert_int_equal(s.n_asked, 2);
	assert_int_equal(s.asked[0], COPIER_COPY);
	assert_int_equal(s.asked[1], COPIER_SYNC);
	assert_true(s.result.frozen && s.result.stopped_us > 0);
	assert_int_equal(s.result.copied.pages, 20);
	assert_int_equal(s.machine.life.state, VM_PAUSED);
	assert_ptr_equal(s.machine.user, &s.owner);
	assert_false(save_running(&s.save));
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
	if (thaw_start(&s.thaw, &s.machine, &s.agent.at, mock_socket(), &s.identity, on_thawed,
		       &err) < 0)
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
		assert_int_equal(s.n_asked, 0);
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
	while (s.n_asked == 0)
		assert_true(loop_turn(s.loop));
	mock_qemu_close(&s.qemu);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	assert_int_equal(s.err.code, ERR_UNAVAILABLE);
	assert_int_equal(s.machine.life.state, VM_GONE);
	scene_end();
}

/* --- the copier --------------------------------------------------------------------------- */

static void a_copier_may_fail_and_its_words_are_told(void **state)
{
	struct copier c = honest;

	(void)state;
	for (int verb = COPIER_COPY; verb <= COPIER_SYNC; verb++) {
		c = honest;
		c.answer[verb] = (struct copier_reply){ .code = ERR_EXHAUSTED, .sys = ENOSPC };
		snprintf(c.answer[verb].msg, sizeof(c.answer[verb].msg), "no\nroom\x1b[2J");
		scene_run(&(struct mock_qemu){ 0 }, agent_routes, COUNT(agent_routes), &c);
		assert_int_equal(s.done, 1);
		assert_int_equal(s.err.code, ERR_EXHAUSTED);
		assert_int_equal(s.err.sys, ENOSPC);
		assert_string_equal(s.err.msg, "save: copier: no?room?[2J");
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
		const struct copier c = { .answer = { row->copy, row->sync } };

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
		{ "too short", { .answer = { GOOD, GOOD }, .length = 8 }, true },
		{ "too long",
		  { .answer = { GOOD, GOOD }, .length = sizeof(struct copier_reply) + 1 },
		  true },
		{ "ends at the copy",
		  { .answer = { GOOD, GOOD }, .end_at = COPIER_COPY + 1 },
		  true },
		{ "ends at the sync",
		  { .answer = { GOOD, GOOD }, .end_at = COPIER_SYNC + 1 },
		  true },
		{ "speaks unasked", { .answer = { GOOD, GOOD }, .speaks_first = true }, false },
		{ "was never there", { .answer = { GOOD, GOOD }, .ends_first = true }, false },
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
	c.twice_at = COPIER_COPY + 1;
	c.answer[1].pages_crc++; /* told apart */
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
	scene_open(&(struct mock_qemu){ .mute_at = "stop" }, agent_routes, COUNT(agent_routes));
	scene_save(&honest);
	while (!mock_qemu_heard(&s.qemu, "stop"))
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
	while (s.n_asked == 0)
		assert_true(loop_turn(s.loop));
	assert_true(s.save.deadline.active);
	timer_start(&s.save.deadline, 0); /* time is not waited for */
	loop_run(s.loop);
	assert_int_equal(s.err.code, ERR_TIMEOUT);
	assert_int_equal(s.machine.life.state, VM_PAUSED);
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
		assert_false(save_running(&s.save));
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
		assert_int_equal(thaw_start(&s.thaw, &s.machine, &s.agent.at, mock_socket(),
					    &s.identity, on_thawed, &err),
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
		cmocka_unit_test(it_may_go_on_before_it_is_durable),
		cmocka_unit_test(without_memory_the_disk_is_written_back),
		cmocka_unit_test(one_that_was_adopted_is_saved_and_thawed_too),
		cmocka_unit_test(whatever_the_guest_does_it_is_stopped),
		cmocka_unit_test(one_that_must_freeze_runs_on_when_it_does_not),
		cmocka_unit_test(one_that_cannot_be_reached_is_stopped_too),
		cmocka_unit_test(qemu_may_refuse_and_the_guest_goes_on),
		cmocka_unit_test(qemu_may_end_at_any_command),
		cmocka_unit_test(qemu_may_end_while_pages_are_copied),
		cmocka_unit_test(a_copier_may_fail_and_its_words_are_told),
		cmocka_unit_test(the_lies_of_a_copier_are_a_failure),
		cmocka_unit_test(words_without_an_end_are_cut),
		cmocka_unit_test(a_copier_that_breaks_the_rules_is_a_failure),
		cmocka_unit_test(a_copier_that_answers_twice_is_a_failure),
		cmocka_unit_test(a_copier_may_end_while_qemu_is_asked),
		cmocka_unit_test(a_copier_that_is_silent_runs_out_of_time),
		cmocka_unit_test(a_thaw_sets_the_clock_and_keeps_the_connections),
		cmocka_unit_test(a_thaw_that_fails_says_so),
		cmocka_unit_test(it_may_be_cancelled_at_any_time),
		cmocka_unit_test(a_thaw_may_be_cancelled_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
