/* test_node_warden_link.c - the client of warden's socket against a warden made of a table. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/fdmsg.h"
#include "node/links/warden_link.h"

enum { GUARD_MS = 20000, CALLS = 8, MS = 10000 };

static struct scene {
	struct loop *loop;
	struct timer guard;
	int door, peer; /* the other side's */
	struct warden_link *link;
	struct warden_link_user user;
	int gone;
	struct err why;
	size_t n_done, enough;
	bool close_when_done;
	struct called {
		struct warden_call call;
		int done;
		struct err err;
		struct warden_reply reply;
		int fd;
		size_t n_fds, order;
	} calls[CALLS];
	char path[64];
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static void on_gone(struct warden_link_user *u, const struct err *err)
{
	(void)u;
	s.gone++;
	s.why = *err;
	loop_stop(s.loop);
}

static void on_done(struct warden_call *c, const struct warden_reply *reply, int *fds, size_t n_fds,
		    const struct err *err)
{
	struct called *me = CONTAINER_OF(c, struct called, call);

	assert_true((reply == NULL) == (err != NULL));
	me->done++;
	me->order = ++s.n_done;
	me->n_fds = n_fds;
	if (err)
		me->err = *err;
	else
		me->reply = *reply;
	if (n_fds > 0)
		me->fd = take_fd(&fds[0]); /* the others are closed for us */
	if (s.close_when_done) {
		warden_link_close(TAKE(s.link));
		loop_stop(s.loop);
	}
	if (s.n_done == s.enough)
		loop_stop(s.loop);
}

static void scene_open(void)
{
	static const struct warden_link_ops ops = { on_gone };
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct err err;

	s = (struct scene){ .peer = -1 };
	for (size_t i = 0; i < CALLS; i++)
		s.calls[i].fd = -1;
	snprintf(s.path, sizeof(s.path), "/tmp/hotcell-warden-%d.sock", (int)getpid());
	unlink(s.path);
	memcpy(at.sun_path, s.path, sizeof(s.path));
	s.door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s.door, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s.door, 1), 0);
	assert_int_equal(loop_open(&s.loop, &err), 0);
	s.user.ops = &ops;
	assert_int_equal(warden_link_open(s.loop, s.path, &s.user, &s.link, &err), 0);
	s.peer = accept4(s.door, NULL, NULL, SOCK_CLOEXEC);
	assert_true(s.peer >= 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	warden_link_close(TAKE(s.link));
	if (s.peer >= 0)
		close(s.peer);
	close(s.door);
	unlink(s.path);
	for (size_t i = 0; i < CALLS; i++) {
		assert_true(s.calls[i].done <= 1);
		if (s.calls[i].fd >= 0)
			close(s.calls[i].fd);
	}
	loop_free(s.loop);
}

static void ask(size_t i, enum warden_verb verb, const int *fds, size_t n, uint64_t ms)
{
	struct warden_request rq = { .verb = verb };
	struct err err;

	snprintf(rq.id, sizeof(rq.id), "vm-%zu", i);
	if (warden_link_call(s.link, &s.calls[i].call, &rq, fds, n, ms, on_done, &err) < 0)
		fail_msg("%s", err.msg);
}

static void run_until(size_t enough)
{
	s.enough = enough;
	loop_run(s.loop);
}

static uint64_t hear(struct warden_request *ret, int *fds, size_t *n)
{
	int none[WARDEN_FDS_MAX];
	struct err err;

	if (fdmsg_recv(s.peer, ret, sizeof(*ret), fds ? fds : none, fds ? WARDEN_FDS_MAX : 0, n,
		       &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(ret->version, WARDEN_VERSION);
	return ret->tag;
}

static void reply(const struct warden_reply *r, const int *fds, size_t n)
{
	struct err err;

	if (fdmsg_send(s.peer, r, sizeof(*r), fds, n, &err) < 0)
		fail_msg("%s", err.msg);
}

static void replies_find_their_requests_in_any_order(void **state)
{
	struct warden_request rq;
	uint64_t tags[3];
	size_t n;

	(void)state;
	scene_open();
	for (size_t i = 0; i < 3; i++)
		ask(i, WARDEN_SLOT_MAKE, NULL, 0, MS);
	for (size_t i = 0; i < 3; i++) {
		tags[i] = hear(&rq, NULL, &n);
		assert_int_equal(rq.verb, WARDEN_SLOT_MAKE);
		assert_int_equal(rq.id[3], (int)('0' + i));
	}
	reply(&(struct warden_reply){ .tag = tags[2], .slot = 2 }, NULL, 0);
	reply(&(struct warden_reply){ .tag = tags[0], .slot = 0 }, NULL, 0);
	reply(
		&(struct warden_reply){
			.tag = tags[1], .code = ERR_EXISTS, .sys = EEXIST, .msg = "there is one" },
		NULL, 0);
	run_until(3);
	assert_int_equal(s.calls[2].order, 1);
	assert_int_equal(s.calls[0].order, 2);
	assert_int_equal(s.calls[2].reply.slot, 2);
	assert_int_equal(s.calls[0].reply.slot, 0);
	assert_int_equal(s.calls[1].err.code, ERR_EXISTS);
	assert_int_equal(s.calls[1].err.sys, EEXIST);
	assert_string_equal(s.calls[1].err.msg, "there is one");
	scene_end();
}

static size_t open_count(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void descriptors_go_both_ways_and_none_is_lost(void **state)
{
	struct warden_request rq;
	int pipes[2], got[WARDEN_FDS_MAX];
	size_t n = 0, before;
	char byte = 0;
	uint64_t tag;

	(void)state;
	scene_open();
	before = open_count();
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	ask(0, WARDEN_TEMPLATE_BEGIN, pipes, 2, MS); /* takes them */
	tag = hear(&rq, got, &n);
	assert_int_equal(n, 2);
	assert_int_equal(write(got[1], "x", 1), 1);
	reply(&(struct warden_reply){ .tag = tag, .count = 2 }, got, 2);
	close(got[0]);
	close(got[1]);
	run_until(1);
	assert_int_equal(s.calls[0].n_fds, 2);
	assert_int_equal(read(s.calls[0].fd, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(take_fd(&s.calls[0].fd));
	assert_int_equal(open_count(), before);
	scene_end();
}

static void a_late_reply_is_dropped_with_its_descriptors(void **state)
{
	struct warden_request rq;
	size_t n = 0, before;
	uint64_t late, tag;
	int fd;

	(void)state;
	scene_open();
	before = open_count();
	ask(0, WARDEN_SOCKETS, NULL, 0, 20);
	late = hear(&rq, NULL, &n);
	run_until(1);
	assert_int_equal(s.calls[0].err.code, ERR_TIMEOUT);
	ask(1, WARDEN_SLOT_MAKE, NULL, 0, MS);
	tag = hear(&rq, NULL, &n);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	reply(&(struct warden_reply){ .tag = late, .count = 1 }, &fd, 1);
	close(fd);
	reply(&(struct warden_reply){ .tag = tag }, NULL, 0);
	run_until(2);
	assert_int_equal(s.calls[1].err.code, ERR_NONE);
	assert_int_equal(open_count(), before);
	scene_end();
}

static void its_end_fails_everything_once(void **state)
{
	struct warden_request rq = { .verb = WARDEN_FACTS };
	struct err err;

	(void)state;
	scene_open();
	for (size_t i = 0; i < 3; i++)
		ask(i, WARDEN_SLOT_MAKE, NULL, 0, MS);
	close(take_fd(&s.peer));
	run_until(SIZE_MAX);
	assert_int_equal(s.gone, 1);
	assert_int_equal(s.why.code, ERR_UNAVAILABLE);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(s.calls[i].done, 1);
		assert_int_equal(s.calls[i].err.code, ERR_UNAVAILABLE);
	}
	assert_int_equal(
		warden_link_call(s.link, &s.calls[3].call, &rq, NULL, 0, MS, on_done, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	scene_end();
}

static void hanging_up_is_the_same_as_its_end(void **state)
{
	(void)state;
	scene_open();
	ask(0, WARDEN_SLOT_MAKE, NULL, 0, MS);
	warden_link_hang_up(s.link);
	assert_int_equal(s.calls[0].done, 0);
	run_until(SIZE_MAX);
	assert_int_equal(s.gone, 1);
	assert_int_equal(s.calls[0].err.code, ERR_UNAVAILABLE);
	scene_end();
}

static void a_message_of_another_size_ends_it(void **state)
{
	(void)state;
	scene_open();
	ask(0, WARDEN_SLOT_MAKE, NULL, 0, MS);
	assert_int_equal(send(s.peer, "hello", 5, 0), 5);
	run_until(SIZE_MAX);
	assert_int_equal(s.gone, 1);
	assert_int_equal(s.calls[0].done, 1);
	scene_end();
}

static void it_may_be_closed_from_a_callback(void **state)
{
	struct warden_request rq;
	uint64_t a, b;
	size_t n;

	(void)state;
	scene_open();
	ask(0, WARDEN_SLOT_MAKE, NULL, 0, MS);
	ask(1, WARDEN_SLOT_MAKE, NULL, 0, MS);
	a = hear(&rq, NULL, &n);
	b = hear(&rq, NULL, &n);
	reply(&(struct warden_reply){ .tag = a }, NULL, 0);
	reply(&(struct warden_reply){ .tag = b }, NULL, 0);
	s.close_when_done = true;
	run_until(SIZE_MAX);
	assert_int_equal(s.calls[0].done, 1);
	assert_int_equal(s.calls[1].done, 0);
	assert_int_equal(s.gone, 0);
	scene_end();
}

static void a_cancelled_call_is_never_told(void **state)
{
	struct warden_request rq;
	uint64_t a, b;
	size_t n;

	(void)state;
	scene_open();
	ask(0, WARDEN_SLOT_MAKE, NULL, 0, MS);
	ask(1, WARDEN_SLOT_MAKE, NULL, 0, MS);
	warden_call_cancel(&s.calls[0].call);
	warden_call_cancel(&s.calls[0].call);
	a = hear(&rq, NULL, &n);
	b = hear(&rq, NULL, &n);
	reply(&(struct warden_reply){ .tag = a }, NULL, 0);
	reply(&(struct warden_reply){ .tag = b }, NULL, 0);
	run_until(1);
	assert_int_equal(s.calls[0].done, 0);
	assert_int_equal(s.calls[1].done, 1);
	scene_end();
}

/* More than the socket holds: the rest is sent when warden reads, in order. */
static void requests_wait_while_warden_does_not_read(void **state)
{
	enum { MANY = WARDEN_CALLS_MAX };
	static struct called many[MANY + 1];
	struct warden_request rq = { .verb = WARDEN_SLOT_MAKE };
	struct err err;
	size_t n;

	(void)state;
	scene_open();
	memset(many, 0, sizeof(many));
	for (size_t i = 0; i < MANY; i++) {
		many[i].fd = -1;
		rq.count = (uint32_t)i;
		assert_int_equal(
			warden_link_call(s.link, &many[i].call, &rq, NULL, 0, MS, on_done, &err),
			0);
	}
	assert_int_equal(
		warden_link_call(s.link, &many[MANY].call, &rq, NULL, 0, MS, on_done, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	for (size_t i = 0; i < MANY; i++) {
		uint64_t tag;

		tag = hear(&rq, NULL, &n);
		assert_int_equal(rq.count, i);
		reply(&(struct warden_reply){ .tag = tag, .slot = (uint32_t)i }, NULL, 0);
		run_until(i + 1);
		assert_int_equal(many[i].reply.slot, i);
	}
	scene_end();
}

static void nobody_at_the_door_is_an_error(void **state)
{
	static struct warden_link_user user;
	struct warden_link *link;
	struct loop *loop;
	struct err err;

	(void)state;
	assert_int_equal(loop_open(&loop, &err), 0);
	assert_int_equal(warden_link_open(loop, "/nonexistent/warden.sock", &user, &link, &err),
			 -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	loop_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replies_find_their_requests_in_any_order),
		cmocka_unit_test(descriptors_go_both_ways_and_none_is_lost),
		cmocka_unit_test(a_late_reply_is_dropped_with_its_descriptors),
		cmocka_unit_test(its_end_fails_everything_once),
		cmocka_unit_test(hanging_up_is_the_same_as_its_end),
		cmocka_unit_test(a_message_of_another_size_ends_it),
		cmocka_unit_test(it_may_be_closed_from_a_callback),
		cmocka_unit_test(a_cancelled_call_is_never_told),
		cmocka_unit_test(requests_wait_while_warden_does_not_read),
		cmocka_unit_test(nobody_at_the_door_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
