/* link_scene.h - for tests of the gateway: its link to node, and a node that is made here. */
#pragma once

#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "gateway/node_link.h"
#include "base/fdmsg.h"

enum { GUARD_MS = 60000, CALLS = 8, MS = 50000 };

static struct scene {
	struct loop *loop;
	struct timer guard, pause;
	int door, peer; /* node's */
	struct node_link *link;
	struct node_link_user user;
	size_t n_done, n_up, n_down, n_gone;
	uint32_t generation;
	bool close_when_done, ask_when_done, close_when_down;
	struct called {
		struct link_call call;
		int done;
		struct err err;
		struct node_reply reply;
		char after[128];
		int fd;
		size_t n_fds, order;
	} calls[CALLS];
	char path[64];
} s;

static inline void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static inline void ask_ms(size_t i, enum node_verb verb, uint64_t ms);

static inline void on_gone(struct node_link_user *u, const char *id, uint32_t generation)
{
	assert_ptr_equal(u, &s.user);
	assert_string_equal(id, "sandbox");
	s.generation = generation;
	s.n_gone++;
}

static inline void on_down(struct node_link_user *u)
{
	(void)u;
	s.n_down++;
	if (s.close_when_down)
		node_link_close(TAKE(s.link));
}

static inline void on_up(struct node_link_user *u)
{
	(void)u;
	s.n_up++;
}

static inline void on_done(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;
	const struct node_reply *reply = node_reply_of(r);
	struct called *me = CONTAINER_OF(c, struct called, call);

	assert_true(reply || err);
	assert_true(!reply || reply->code == (err ? err->code : ERR_NONE));
	assert_null(c->link);
	me->done++;
	me->order = ++s.n_done;
	me->n_fds = r->n_fds;
	if (err)
		me->err = *err;
	if (reply)
		me->reply = *reply;
	assert_true(bytes_to_str(r->after, me->after, sizeof(me->after)));
	if (r->n_fds > 0)
		me->fd = take_fd(&r->fds[0]); /* the others are closed for us */
	if (s.ask_when_done) {
		s.ask_when_done = false;
		ask_ms(7, NODE_GET, MS);
	}
	if (s.close_when_done)
		node_link_close(TAKE(s.link));
}

static inline void node_starts(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	unlink(s.path);
	memcpy(at.sun_path, s.path, sizeof(s.path));
	s.door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(s.door, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s.door, 8), 0);
}

static inline void node_accepts(void)
{
	struct err err = { .sys = EAGAIN };
	size_t n_up = s.n_up;

	while ((s.peer = accept4(s.door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
		assert_true(loop_turn(s.loop));
	while (link_hello_answer(s.peer, NODE_VERSION_MIN, NODE_VERSION_MAX, &err) < 0) {
		assert_int_equal(err.sys, EAGAIN);
		assert_true(loop_turn(s.loop));
	}
	while (s.n_up == n_up)
		assert_true(loop_turn(s.loop));
}

static inline void node_dies(void)
{
	close(take_fd(&s.peer));
	close(take_fd(&s.door));
}

static inline void scene_open(void)
{
	static const struct node_link_ops ops = { on_gone, on_down, on_up };
	struct err err;

	s = (struct scene){ .peer = -1, .door = -1, .user = { &ops } };
	for (size_t i = 0; i < CALLS; i++)
		s.calls[i].fd = -1;
	snprintf(s.path, sizeof(s.path), "/tmp/hotcell-link-%d.sock", (int)getpid());
	unlink(s.path);
	assert_int_equal(loop_open(&s.loop, &err), 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	assert_int_equal(node_link_open(s.loop, s.path, &s.user, &s.link, &err), 0);
}

static inline void scene_open_with_node(void)
{
	scene_open();
	node_starts();
	node_accepts();
	assert_int_equal(s.n_up, 1);
}

static inline void scene_end(void)
{
	timer_stop(&s.guard);
	node_link_close(TAKE(s.link));
	auto_close(&s.peer);
	auto_close(&s.door);
	unlink(s.path);
	for (size_t i = 0; i < CALLS; i++) {
		assert_true(s.calls[i].done <= 1);
		assert_null(s.calls[i].call.message);
		auto_close(&s.calls[i].fd);
	}
	loop_free(s.loop);
}

static inline void ask_ms(size_t i, enum node_verb verb, uint64_t ms)
{
	struct node_request rq = { .verb = verb, .team = "t", .template_id = "base" };
	struct err err;

	snprintf(rq.id, sizeof(rq.id), "id-%zu", i);
	if (node_link_call(s.link, &s.calls[i].call, &rq, BYTES_LIT("{}"), ms, on_done, &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void ask(size_t i, enum node_verb verb)
{
	ask_ms(i, verb, MS);
}

static inline void run_until(const size_t *counter, size_t enough)
{
	while (*counter < enough)
		assert_true(loop_turn(s.loop));
}

/* The next request node hears; its tag. */
static inline uint64_t hear(struct node_request *ret)
{
	uint8_t in[sizeof(*ret) + 64];
	struct err err;
	size_t len = 0, n = 0;

	while (fdmsg_recv_some(s.peer, in, sizeof(*ret), sizeof(in), &len, NULL, 0, &n, &err) < 0) {
		if (err.sys != EAGAIN)
			fail_msg("%s", err.msg);
		assert_true(loop_turn(s.loop));
	}
	memcpy(ret, in, sizeof(*ret));
	assert_int_equal(ret->text_len, ret->verb == NODE_GIVE_UP ? 0 : 2);
	assert_int_equal(len, sizeof(*ret) + ret->text_len);
	assert_memory_equal(in + sizeof(*ret), "{}", ret->text_len);
	assert_true(ret->tag != 0);
	return ret->tag;
}

static inline void reply_with(const struct node_reply *r, struct bytes after, const int *fds,
			      size_t n)
{
	struct node_reply out = *r;
	struct err err;

	out.text_len = (uint32_t)after.len;
	if (fdmsg_send_pair(s.peer, (struct bytes){ (uint8_t *)&out, sizeof(out) }, after, fds, n,
			    &err) < 0)
		fail_msg("%s", err.msg);
}

static inline void reply(const struct node_reply *r)
{
	reply_with(r, (struct bytes){ 0 }, NULL, 0);
}
