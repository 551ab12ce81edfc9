/* vm_save_scene.h - a running sandbox to be saved: a mock QEMU, a mock agent, and a copier made of
 * bytes.
 */
#pragma once

#include "tests/unit/vm_mock_agent.h"
#include "tests/unit/vm_mock_qemu.h"

#include <errno.h>
#include <sys/socket.h>

#include "net/watch.h"
#include "vm/save.h"
#include "vm/thaw.h"

enum { GUARD_MS = 60000, RECONCILE_MS = 5, SAVE_BASE_CRC = 0x5a5a };

/* What the copier does with a request. */
struct copier {
	struct copier_reply answer[COPIER_VERBS];
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
	uint32_t asked[8];
	size_t n_asked;
	struct save_result result;
	bool disk_only, must_freeze, flush, sync_later;
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
#define ALL_GOOD { GOOD, GOOD, GOOD, GOOD }
static const struct copier honest = { .answer = ALL_GOOD };

static inline void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

/* --- the copier --------------------------------------------------------------------------- */

static inline void copier_end(void)
{
	watch_close(&s.copier_ready);
	if (s.copier_fd >= 0)
		close(take_fd(&s.copier_fd));
}

static inline void copier_say(const struct copier_reply *r)
{
	char room[sizeof(*r) + 64] = { 0 };
	size_t n = s.copier.length ? s.copier.length : sizeof(*r);

	memcpy(room, r, sizeof(*r));
	if (send(s.copier_fd, room, n, MSG_NOSIGNAL) != (ssize_t)n)
		assert_null(s.save.user); /* it was cancelled meanwhile */
}

static inline void on_request(struct watch *w, unsigned int events)
{
	struct copier_request rq;
	int verb;

	(void)w, (void)events;
	if (recv(s.copier_fd, &rq, sizeof(rq), MSG_DONTWAIT) != sizeof(rq)) {
		copier_end();
		return;
	}
	assert_int_equal(rq.version, COPIER_VERSION);
	assert_int_equal(rq.base_crc, SAVE_BASE_CRC);
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

static inline int copier_start(void)
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

static inline void on_copied(struct save_user *u, const struct save_result *r)
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

static inline void on_done(struct save_user *u, const struct save_result *r, const struct err *err)
{
	(void)u;
	s.done++;
	s.result = *r;
	if (err)
		s.err = *err;
	loop_stop(s.loop);
}

static inline void on_thawed(struct thaw *t, const struct err *err)
{
	(void)t;
	s.thawed++;
	s.err = err ? *err : (struct err){ 0 };
	loop_stop(s.loop);
}

static inline void on_owner_open(struct machine_user *u)
{
	(void)u;
}

static inline void on_owner_ready(struct machine_user *u)
{
	(void)u;
	s.ready++;
	loop_stop(s.loop);
}

static inline void on_owner_event(struct machine_user *u, const struct qmp_message *event)
{
	(void)u, (void)event;
}

static inline void on_owner_gone(struct machine_user *u, const struct err *err)
{
	(void)u, (void)err;
	s.owner_gone++;
	loop_stop(s.loop);
}

/* A sandbox that runs, as its owner sees it. */
static inline void scene_open(const struct mock_qemu *qemu, const struct mock_route *routes,
			      size_t n)
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

static inline void scene_save(const struct copier *copier)
{
	static const struct save_user_ops ops = { on_copied, on_done };
	struct save_spec spec = { .user = &s.user,
				  .agent = s.agent.at,
				  .control_token = s.identity.control_token,
				  .save_file = "/vm/state",
				  .base_crc = SAVE_BASE_CRC,
				  .must_freeze = s.must_freeze,
				  .flush = s.flush,
				  .disk_only = s.disk_only };
	struct err err;

	s.copier = *copier;
	s.user.ops = &ops;
	if (save_start(&s.save, &s.machine, &spec, mock_socket(), &err) < 0)
		fail_msg("%s", err.msg);
	if (!s.disk_only)
		save_copier(&s.save, copier_start());
}

static inline void scene_run(const struct mock_qemu *qemu, const struct mock_route *routes,
			     size_t n, const struct copier *copier)
{
	scene_open(qemu, routes, n);
	scene_save(copier);
	loop_run(s.loop);
}

static inline void scene_end(void)
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

static inline void let_go_on(void)
{
	struct err err;

	if (thaw_start(&s.thaw,
		       &(struct thaw_spec){ &s.machine, &s.agent.at, mock_socket(), &s.identity },
		       on_thawed, &err) < 0)
		fail_msg("%s", err.msg);
	loop_run(s.loop);
	assert_int_equal(s.thawed, 1);
}

static inline void on_later(struct timer *t)
{
	(void)t;
	loop_stop(s.loop);
}
