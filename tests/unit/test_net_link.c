/* test_net_link.c - the client of every daemon's socket, against a daemon that is made here: tags,
 * descriptors, deadlines, losses, and what both say first. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "net/link.h"

enum { GUARD_MS = 60000, CALLS = 8, MS = 20000, CALLS_MAX = 600, SILENCE_MS = 200 };

struct request {
	uint64_t tag;
	uint32_t verb, number;
	char pad[512];
};
struct reply {
	uint64_t tag;
	uint32_t code;
	int32_t sys;
	char msg[32];
	uint32_t number;
};

static struct scene {
	struct loop *loop;
	struct timer guard;
	int door, peer; /* the daemon's */
	struct link link;
	struct link_words words;
	struct link_ops ops;
	size_t n_done, n_up, n_down, n_news, n_again, n_unanswered;
	bool close_when_done, close_when_down;
	struct called {
		struct link_call call;
		int done;
		struct err err;
		struct reply reply;
		int fd;
		size_t n_fds, order;
	} calls[CALLS];
	char path[64];
	int log, stderr_was; /* while the log is read; -1 */
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

#define UNTIL(condition)     \
	while (!(condition)) \
	assert_true(loop_turn(s.loop))

static void on_up(struct link *l)
{
	assert_ptr_equal(l, &s.link);
	s.n_up++;
}

static void on_down(struct link *l)
{
	assert_false(l->up);
	s.n_down++;
	if (s.close_when_down)
		link_close(l);
}

static void on_unasked(struct link *l, const struct link_reply *r)
{
	(void)l, (void)r;
	s.n_news++;
}

static void on_again(struct link_call *c)
{
	(void)c;
	s.n_again++;
}

static void on_unanswered(struct link *l, struct bytes request)
{
	(void)l;
	assert_int_equal(request.len, sizeof(struct request));
	s.n_unanswered++;
}

static void on_done(struct link_call *c, const struct link_reply *r)
{
	struct called *me = CONTAINER_OF(c, struct called, call);

	assert_true(r->err || r->head.len == sizeof(struct reply));
	assert_true(!r->err || r->n_fds == 0);
	assert_null(c->link);
	me->done++;
	me->order = ++s.n_done;
	me->n_fds = r->n_fds;
	if (r->err)
		me->err = *r->err;
	if (r->head.len > 0)
		memcpy(&me->reply, r->head.ptr, sizeof(me->reply));
	if (r->n_fds > 0)
		me->fd = take_fd(&r->fds[0]); /* the others are closed for us */
	if (s.close_when_done)
		link_close(&s.link);
}

static void daemon_starts(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	unlink(s.path);
	memcpy(at.sun_path, s.path, sizeof(s.path));
	s.door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(s.door, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s.door, 8), 0);
}

static void daemon_accepts(void)
{
	while ((s.peer = accept4(s.door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) < 0)
		assert_true(loop_turn(s.loop));
}

/* As a daemon does that speaks these versions; its answer. */
static int daemon_greets(uint32_t min, uint32_t max, struct err *err)
{
	int n;

	daemon_accepts();
	while ((n = link_hello_answer(s.peer, min, max, err)) < 0 && err->sys == EAGAIN)
		assert_true(loop_turn(s.loop));
	return n;
}

static void daemon_is_up(void)
{
	size_t n = s.n_up;
	struct err err;

	assert_int_equal(daemon_greets(3, 4, &err), 0);
	UNTIL(s.n_up == n + 1);
}

static void scene_open(void)
{
	struct err err;

	s = (struct scene){
		.peer = -1,
		.door = -1,
		.log = -1,
		.words = { .name = "it",
			   .own_name = "test",
			   .min = 2,
			   .max = 3,
			   .request_max = sizeof(struct request),
			   .reply_min = sizeof(struct reply),
			   .reply_max = sizeof(struct reply),
			   .msg = offsetof(struct reply, msg),
			   .msg_size = 32,
			   .sys = offsetof(struct reply, sys),
			   .calls_max = CALLS_MAX,
			   .fds_max = 4,
			   .batch = 16 },
		.ops = { .on_up = on_up,
			 .on_down = on_down,
			 .on_unasked = on_unasked,
			 .on_again = on_again,
			 .on_unanswered = on_unanswered },
	};
	for (size_t i = 0; i < CALLS; i++)
		s.calls[i].fd = -1;
	snprintf(s.path, sizeof(s.path), "/tmp/hotcell-net-link-%d.sock", (int)getpid());
	assert_int_equal(loop_open(&s.loop, &err), 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	link_open(&s.link, s.loop, s.path, &s.words, &s.ops);
	daemon_starts();
}

static void scene_open_up(void)
{
	scene_open();
	daemon_is_up();
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	link_close(&s.link);
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

static int ask_with(struct link_call *c, uint32_t number, struct link_ask what, struct err *err)
{
	const struct request rq = { .verb = 7, .number = number };

	what.request = (struct bytes){ (const uint8_t *)&rq, sizeof(rq) };
	return link_ask(&s.link, c, &what, on_done, err);
}

static void ask_so(size_t i, struct link_ask what)
{
	struct err err;

	if (ask_with(&s.calls[i].call, (uint32_t)i, what, &err) < 0)
		fail_msg("%s", err.msg);
}

static void ask(size_t i)
{
	ask_so(i, (struct link_ask){ .deadline_ms = MS });
}

/* The next request the daemon hears; its tag. */
static uint64_t hear(struct request *ret)
{
	struct err err;
	size_t n = 0;

	while (fdmsg_recv(s.peer, ret, sizeof(*ret), NULL, 0, &n, &err) < 0) {
		if (err.sys != EAGAIN)
			fail_msg("%s", err.msg);
		assert_true(loop_turn(s.loop));
	}
	return ret->tag;
}

static void reply_fds(struct reply r, const int *fds, size_t n)
{
	struct err err;

	if (fdmsg_send(s.peer, &r, sizeof(r), fds, n, &err) < 0)
		fail_msg("%s", err.msg);
}

static void reply(uint64_t tag, uint32_t number)
{
	reply_fds((struct reply){ .tag = tag, .number = number }, NULL, 0);
}

static size_t open_count(void)
{
	size_t n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void log_begin(void)
{
	s.log = memfd_create("log", MFD_CLOEXEC);
	s.stderr_was = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	assert_true(s.log >= 0 && s.stderr_was >= 0);
	assert_int_equal(dup2(s.log, STDERR_FILENO), STDERR_FILENO);
}

static void log_end(void)
{
	assert_int_equal(dup2(s.stderr_was, STDERR_FILENO), STDERR_FILENO);
	close(s.stderr_was);
	close(take_fd(&s.log));
}

static size_t log_lines(const char *words)
{
	static char text[64 * 1024];
	ssize_t len = pread(s.log, text, sizeof(text) - 1, 0);
	size_t n = 0;

	assert_true(len >= 0);
	text[len] = '\0';
	for (const char *at = text; (at = strstr(at, words)); at++)
		n++;
	return n;
}

/* --- requests and replies ----------------------------------------------------------------- */

static void replies_find_their_requests_in_any_order(void **state)
{
	struct request rq;
	uint64_t tags[3];

	(void)state;
	scene_open_up();
	for (size_t i = 0; i < 3; i++)
		ask(i);
	for (size_t i = 0; i < 3; i++) {
		tags[i] = hear(&rq);
		assert_int_equal(rq.verb, 7);
		assert_int_equal(rq.number, i);
	}
	reply(tags[2], 12);
	reply(tags[0], 10);
	reply_fds((struct reply){ tags[1], ERR_EXISTS, EEXIST, "there is one", 0 }, NULL, 0);
	UNTIL(s.n_done == 3);
	assert_int_equal(s.calls[2].order, 1);
	assert_int_equal(s.calls[2].reply.number, 12);
	assert_int_equal(s.calls[0].reply.number, 10);
	assert_int_equal(s.calls[1].err.code, ERR_EXISTS);
	assert_int_equal(s.calls[1].err.sys, EEXIST);
	assert_string_equal(s.calls[1].err.msg, "there is one");
	assert_int_equal(s.n_unanswered, 0);
	scene_end();
}

static void descriptors_go_both_ways_and_none_is_lost(void **state)
{
	struct request rq;
	struct err err;
	int pipes[2], got[2];
	size_t n = 0, before;
	char byte = 0;

	(void)state;
	scene_open_up();
	before = open_count();
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	ask_so(0, (struct link_ask){ .fds = pipes, .n_fds = 2, .deadline_ms = MS });
	assert_int_equal(fdmsg_recv(s.peer, &rq, sizeof(rq), got, 2, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(write(got[1], "x", 1), 1);
	reply_fds((struct reply){ .tag = rq.tag }, got, 2);
	close(got[0]);
	close(got[1]);
	UNTIL(s.n_done == 1);
	assert_int_equal(s.calls[0].n_fds, 2);
	assert_int_equal(read(s.calls[0].fd, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(take_fd(&s.calls[0].fd));
	assert_int_equal(open_count(), before);
	close(take_fd(&s.peer)); /* and when it cannot be asked */
	UNTIL(s.n_down == 1);
	before = open_count();
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	assert_int_equal(
		ask_with(&s.calls[1].call, 1, (struct link_ask){ .fds = pipes, .n_fds = 2 }, &err),
		-1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	assert_int_equal(open_count(), before);
	scene_end();
}

static void a_late_reply_is_dropped_with_its_descriptors(void **state)
{
	struct request rq;
	uint64_t late;
	size_t before;
	int fd;

	(void)state;
	scene_open_up();
	before = open_count();
	ask_so(0, (struct link_ask){ .deadline_ms = 20 });
	late = hear(&rq);
	UNTIL(s.n_done == 1);
	assert_int_equal(s.calls[0].err.code, ERR_TIMEOUT);
	assert_int_equal(s.n_unanswered, 1);
	ask(1);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	reply_fds((struct reply){ .tag = late }, &fd, 1);
	close(fd);
	reply(hear(&rq), 0);
	UNTIL(s.n_done == 2);
	assert_int_equal(s.calls[1].err.code, ERR_NONE);
	assert_int_equal(open_count(), before);
	assert_int_equal(s.n_down, 0);
	scene_end();
}

static void without_room_for_descriptors_one_call_fails(void **state)
{
	const int given[2] = { 0, 0 };
	struct rlimit before, tight;
	struct request rq;
	int highest;

	(void)state;
	scene_open_up();
	ask(0);
	reply_fds((struct reply){ .tag = hear(&rq) }, given, 2);
	highest = dup(0);
	close(highest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	tight = before;
	tight.rlim_cur = (rlim_t)highest + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
	UNTIL(s.n_done == 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(s.calls[0].err.code, ERR_EXHAUSTED);
	ask(1);
	reply(hear(&rq), 0);
	UNTIL(s.n_done == 2);
	assert_int_equal(s.calls[1].err.code, ERR_NONE);
	assert_int_equal(s.n_down, 0);
	scene_end();
}

static void a_cancelled_call_is_never_told(void **state)
{
	struct request rq;
	uint64_t a;

	(void)state;
	scene_open_up();
	ask(0);
	ask(1);
	link_cancel(&s.calls[0].call);
	link_cancel(&s.calls[0].call);
	assert_int_equal(s.n_unanswered, 1);
	a = hear(&rq);
	reply(a, 0);
	reply(hear(&rq), 0);
	UNTIL(s.n_done == 1);
	assert_int_equal(s.calls[0].done, 0);
	assert_int_equal(s.calls[1].done, 1);
	scene_end();
}

/* More than the socket holds: the rest is sent when the daemon reads, in order. */
static void requests_wait_while_it_does_not_read(void **state)
{
	static struct called many[CALLS_MAX + 1];
	struct request rq;
	struct err err;

	(void)state;
	scene_open_up();
	memset(many, 0, sizeof(many));
	for (uint32_t i = 0; i < CALLS_MAX; i++) {
		many[i].fd = -1;
		assert_int_equal(
			ask_with(&many[i].call, i, (struct link_ask){ .deadline_ms = MS }, &err),
			0);
	}
	assert_non_null(s.link.waiting.first);
	assert_int_equal(ask_with(&many[CALLS_MAX].call, 0, (struct link_ask){ 0 }, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	for (uint32_t i = 0; i < CALLS_MAX; i++) {
		uint64_t tag = hear(&rq);

		assert_int_equal(rq.number, i);
		reply(tag, i);
		UNTIL(s.n_done == i + 1);
		assert_int_equal(many[i].reply.number, i);
	}
	scene_end();
}

static void on_first(struct link_call *c, const struct link_reply *r)
{
	(void)c;
	assert_null(r->err);
	link_up(r->link);
}

static void ask_first(struct link *l)
{
	const struct request rq = { .verb = 1 };
	const struct link_ask first = { .request = { (const uint8_t *)&rq, sizeof(rq) },
					.first = true };
	struct err err;

	if (link_ask(l, NULL, &first, on_first, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Else those who wait for it would keep it from coming up. */
static void what_is_asked_first_is_never_one_too_many(void **state)
{
	struct request rq;
	struct err err;

	(void)state;
	scene_open();
	s.ops.on_hello = ask_first;
	for (uint32_t i = 0; i < CALLS_MAX; i++)
		assert_int_equal(ask_with(NULL, i, (struct link_ask){ .wait_ms = LINK_EVER }, &err),
				 0);
	assert_int_equal(daemon_greets(3, 3, &err), 0);
	hear(&rq);
	assert_int_equal(rq.verb, 1);
	reply(rq.tag, 0);
	UNTIL(s.n_up == 1);
	hear(&rq);
	assert_int_equal(rq.verb, 7);
	scene_end();
}

static void so_many_are_with_it_at_once(void **state)
{
	struct request rq;
	struct err err;
	uint64_t tag;
	size_t n;

	(void)state;
	scene_open_up();
	s.words.sent_max = 2;
	for (size_t i = 0; i < 3; i++)
		ask(i);
	tag = hear(&rq);
	hear(&rq);
	assert_int_equal(fdmsg_recv(s.peer, &rq, sizeof(rq), NULL, 0, &n, &err), -1);
	assert_int_equal(err.sys, EAGAIN);
	reply(tag, 0);
	hear(&rq);
	assert_int_equal(rq.number, 2);
	scene_end();
}

static void news_are_told_and_nonsense_ends_the_connection(void **state)
{
	struct request rq;

	(void)state;
	scene_open_up();
	reply(0, 9);
	UNTIL(s.n_news == 1);
	ask(0);
	hear(&rq);
	reply(rq.tag + 1, 0); /* an answer that nobody can have asked for */
	UNTIL(s.n_down == 1);
	assert_int_equal(s.calls[0].err.code, ERR_UNAVAILABLE);
	close(take_fd(&s.peer));
	daemon_is_up();
	ask(1);
	assert_int_equal(send(s.peer, "hello", 5, 0), 5);
	UNTIL(s.n_down == 2);
	assert_int_equal(s.calls[1].done, 1);
	scene_end();
}

/* --- losses ------------------------------------------------------------------------------- */

static void its_end_fails_everything_once(void **state)
{
	struct err err;

	(void)state;
	scene_open_up();
	for (size_t i = 0; i < 3; i++)
		ask(i);
	close(take_fd(&s.peer));
	UNTIL(s.n_down == 1);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(s.calls[i].done, 1);
		assert_int_equal(s.calls[i].err.code, ERR_UNAVAILABLE);
	}
	assert_int_equal(ask_with(&s.calls[3].call, 3, (struct link_ask){ 0 }, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	daemon_is_up(); /* and it comes back by itself */
	scene_end();
}

static void hanging_up_is_the_same_as_its_end(void **state)
{
	(void)state;
	scene_open_up();
	ask(0);
	link_hang_up(&s.link);
	assert_int_equal(s.calls[0].done, 0);
	UNTIL(s.n_down == 1);
	assert_int_equal(s.calls[0].err.code, ERR_UNAVAILABLE);
	scene_end();
}

static void who_may_wait_does_and_is_sent_again_so_often(void **state)
{
	const struct link_ask patient = { .deadline_ms = MS, .wait_ms = MS, .sends_max = 2 };
	struct request rq;

	(void)state;
	scene_open();
	ask_so(0, patient); /* before anybody is there */
	daemon_is_up();
	hear(&rq);
	close(take_fd(&s.peer));
	daemon_is_up();
	assert_int_equal(s.n_again, 1);
	reply(hear(&rq), 5);
	UNTIL(s.n_done == 1);
	assert_int_equal(s.calls[0].reply.number, 5);
	ask_so(1, patient);
	for (size_t i = 0; i < 2; i++) {
		hear(&rq);
		close(take_fd(&s.peer));
		daemon_is_up();
	}
	assert_int_equal(s.calls[1].err.code, ERR_UNAVAILABLE);
	assert_int_equal(s.n_unanswered, 1);
	scene_end();
}

static void waiting_has_an_end(void **state)
{
	(void)state;
	scene_open();
	close(take_fd(&s.door));
	ask_so(0, (struct link_ask){ .deadline_ms = MS, .wait_ms = 30 });
	ask_so(1, (struct link_ask){ .deadline_ms = 30, .wait_ms = MS });
	ask_so(2, (struct link_ask){ .deadline_ms = 30, .wait_ms = LINK_EVER });
	UNTIL(s.n_done == 3);
	assert_int_equal(s.calls[0].err.code, ERR_UNAVAILABLE);
	assert_int_equal(s.calls[1].err.code, ERR_TIMEOUT);
	assert_int_equal(s.calls[2].err.code, ERR_UNAVAILABLE);
	assert_int_equal(s.n_unanswered, 0);
	scene_end();
}

static void a_busy_one_is_asked_again(void **state)
{
	struct request rq;

	(void)state;
	scene_open_up();
	ask_so(0, (struct link_ask){ .wait_ms = LINK_EVER, .busy_ms = 10, .sends_max = 9 });
	for (size_t i = 0; i < 3; i++)
		reply_fds((struct reply){ hear(&rq), ERR_UNAVAILABLE, EAGAIN, "busy", 0 }, NULL, 0);
	reply(hear(&rq), 5);
	UNTIL(s.n_done == 1);
	assert_int_equal(s.calls[0].err.code, ERR_NONE);
	scene_end();
}

static void silence_ends_the_connection(void **state)
{
	struct request rq;

	(void)state;
	scene_open_up();
	s.words.silence_ms = SILENCE_MS;
	ask_so(0, (struct link_ask){ 0 });
	ask_so(1, (struct link_ask){ 0 });
	reply(hear(&rq), 0);
	UNTIL(s.n_done == 1);
	assert_int_equal(s.n_down, 0);
	UNTIL(s.n_down == 1);
	assert_int_equal(s.calls[1].err.code, ERR_UNAVAILABLE);
	scene_end();
}

static void what_nobody_waits_for_is_sent_all_the_same(void **state)
{
	struct request rq;
	struct err err;

	(void)state;
	scene_open_up();
	assert_int_equal(ask_with(NULL, 1, (struct link_ask){ 0 }, &err), 0);
	s.link.sent[1]->on_done = NULL;
	reply(hear(&rq), 0);
	UNTIL(s.link.n_calls == 0);
	assert_int_equal(ask_with(NULL, 2, (struct link_ask){ 0 }, &err), 0);
	scene_end(); /* and freed */
}

static void it_may_be_closed_from_its_callbacks(void **state)
{
	struct request rq;
	uint64_t a;

	(void)state;
	scene_open_up();
	ask(0);
	ask(1);
	a = hear(&rq);
	reply(a, 0);
	reply(hear(&rq), 0);
	s.close_when_done = true;
	UNTIL(s.n_done == 1);
	assert_int_equal(s.calls[1].done, 0);
	assert_int_equal(s.n_down, 0);
	scene_end();

	scene_open_up();
	s.close_when_done = true; /* from the first of two failures */
	ask(0);
	ask(1);
	close(take_fd(&s.peer));
	UNTIL(s.n_done == 1);
	assert_int_equal(s.n_down, 0);
	scene_end();

	scene_open_up();
	s.close_when_down = true;
	close(take_fd(&s.peer));
	UNTIL(s.n_down == 1);
	scene_end();
}

/* --- what is said first ------------------------------------------------------------------- */

/* Both directions: it is newer, it is older. */
static void without_a_common_version_the_reason_is_told(void **state)
{
	static const struct {
		const char *name;
		uint32_t min, max;
	} rows[] = { { "newer", 4, 9 }, { "older", 1, 1 } };
	struct err err;

	(void)state;
	FOR_ROWS(row, rows) {
		scene_open();
		ask_so(0, (struct link_ask){ .deadline_ms = MS, .wait_ms = MS });
		ask_so(1, (struct link_ask){ .wait_ms = LINK_EVER });
		assert_int_equal(daemon_greets(row->min, row->max, &err), -1);
		assert_int_equal(err.code, ERR_VERSION);
		close(take_fd(&s.peer));
		UNTIL(s.link.mismatch && s.n_done == 1);
		assert_int_equal(s.calls[0].err.code, ERR_VERSION);
		assert_non_null(strstr(s.calls[0].err.msg, "restart the older one"));
		assert_int_equal(s.n_up, 0);
		assert_int_equal(
			ask_with(&s.calls[2].call, 2, (struct link_ask){ .wait_ms = MS }, &err),
			-1);
		assert_int_equal(err.code, ERR_VERSION);
		assert_int_equal(daemon_greets(1, 3, &err), 0); /* it was replaced */
		UNTIL(s.n_up == 1);
		assert_false(s.link.mismatch);
		assert_int_equal(s.calls[1].done, 0); /* waits for ever, and was sent now */
		assert_int_equal(s.link.n_sent, 1);
		scene_end();
	}
}

/* Whoever it was is gone; what is there now may be understood. */
static void a_mismatch_ends_with_who_said_it(void **state)
{
	struct err err;

	(void)state;
	scene_open();
	assert_int_equal(daemon_greets(4, 9, &err), -1);
	close(take_fd(&s.peer));
	UNTIL(s.link.mismatch);
	daemon_accepts();
	close(take_fd(&s.peer));
	UNTIL(!s.link.mismatch);
	ask_so(0, (struct link_ask){ .wait_ms = MS });
	daemon_is_up();
	assert_int_equal(s.link.n_sent, 1);
	scene_end();
}

static void a_mismatch_is_in_the_log_whenever_it_begins(void **state)
{
	struct err err;

	(void)state;
	scene_open();
	log_begin();
	for (int i = 0; i < 2; i++) {
		for (int again = 0; again < 2; again++) {
			assert_int_equal(daemon_greets(4, 9, &err), -1);
			close(take_fd(&s.peer));
		}
		daemon_is_up();
		close(take_fd(&s.peer));
		UNTIL(!s.link.up);
	}
	assert_int_equal(log_lines("do not understand each other"), 2);
	log_end();
	scene_end();
}

/* Of an older build: it hangs up. That is told once, also after nobody was there. */
static void without_a_hello_the_log_says_why(void **state)
{
	(void)state;
	scene_open();
	log_begin();
	close(take_fd(&s.door));
	UNTIL(s.link.told);
	daemon_starts();
	for (int i = 0; i < 3; i++) {
		daemon_accepts();
		close(take_fd(&s.peer));
	}
	daemon_is_up();
	assert_int_equal(log_lines("no hello, as of an older build"), 1);
	log_end();
	scene_end();
}

static void a_strange_hello_ends_the_connection(void **state)
{
	struct link_hello good = link_hello_make(2, 3), magic = good, order = good, zero = good,
			  build = good, space = good;
	const struct {
		const char *name;
		const void *msg;
		size_t len;
	} rows[] = {
		{ "short", "hello", 5 },
		{ "another magic", &magic, sizeof(magic) },
		{ "min above max", &order, sizeof(order) },
		{ "version 0", &zero, sizeof(zero) },
		{ "a build without end", &build, sizeof(build) },
		{ "a build with a space", &space, sizeof(space) },
		{ "a reply before the hello", &(struct reply){ .tag = 0 }, sizeof(struct reply) },
	};

	(void)state;
	magic.magic[0] = 'x';
	order.min = 4;
	zero.min = 0;
	memset(build.build, 'x', sizeof(build.build));
	space.build[0] = ' ';
	scene_open();
	FOR_ROWS(row, rows) {
		daemon_accepts();
		assert_int_equal(send(s.peer, row->msg, row->len, 0), (int)row->len);
		UNTIL(s.link.sock < 0);
		close(take_fd(&s.peer));
	}
	assert_int_equal(s.n_up + s.n_down + s.n_news, 0);
	daemon_is_up();
	scene_end();
}

static void a_hello_that_never_comes_is_not_waited_for(void **state)
{
	uint64_t before;

	(void)state;
	scene_open();
	daemon_accepts();
	before = loop_now_ms(s.loop);
	UNTIL(s.link.sock < 0);
	assert_true(loop_now_ms(s.loop) - before >= LINK_HELLO_MS / 2);
	scene_end();
}

static void a_daemon_answers_nothing_but_a_hello_first(void **state)
{
	int pair[2];
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(link_hello_answer(pair[0], 1, 1, &err), -1);
	assert_int_equal(err.sys, EAGAIN);
	err = (struct err){ 0 };
	assert_int_equal(send(pair[1], "hello", 5, 0), 5);
	assert_int_equal(link_hello_answer(pair[0], 1, 1, &err), -1);
	assert_int_not_equal(err.sys, EAGAIN);
	assert_int_equal(recv(pair[1], &err, 1, 0), -1); /* it said nothing */
	close(pair[0]);
	close(pair[1]);
}

/* It calls again every 100 ms. Who leaves without a word is nobody's fault. */
static void a_client_of_an_older_build_is_in_the_log_once(void **state)
{
	static const char *const said[] = { "", "a request of before", "a request of before" };
	struct err err;
	int pair[2];

	(void)state;
	log_begin();
	for (size_t i = 0; i < COUNT(said); i++) {
		assert_int_equal(
			socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
			0);
		if (said[i][0])
			assert_true(send(pair[1], said[i], strlen(said[i]), 0) > 0);
		close(pair[1]);
		assert_int_equal(link_hello_answer(pair[0], 1, 1, &err), -1);
		close(pair[0]);
		assert_int_equal(log_lines("turned away"), i > 0);
	}
	log_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_of_an_older_build_is_in_the_log_once), /* the first */
		cmocka_unit_test(replies_find_their_requests_in_any_order),
		cmocka_unit_test(descriptors_go_both_ways_and_none_is_lost),
		cmocka_unit_test(a_late_reply_is_dropped_with_its_descriptors),
		cmocka_unit_test(without_room_for_descriptors_one_call_fails),
		cmocka_unit_test(a_cancelled_call_is_never_told),
		cmocka_unit_test(requests_wait_while_it_does_not_read),
		cmocka_unit_test(what_is_asked_first_is_never_one_too_many),
		cmocka_unit_test(so_many_are_with_it_at_once),
		cmocka_unit_test(news_are_told_and_nonsense_ends_the_connection),
		cmocka_unit_test(its_end_fails_everything_once),
		cmocka_unit_test(hanging_up_is_the_same_as_its_end),
		cmocka_unit_test(who_may_wait_does_and_is_sent_again_so_often),
		cmocka_unit_test(waiting_has_an_end),
		cmocka_unit_test(a_busy_one_is_asked_again),
		cmocka_unit_test(silence_ends_the_connection),
		cmocka_unit_test(what_nobody_waits_for_is_sent_all_the_same),
		cmocka_unit_test(it_may_be_closed_from_its_callbacks),
		cmocka_unit_test(without_a_common_version_the_reason_is_told),
		cmocka_unit_test(a_mismatch_ends_with_who_said_it),
		cmocka_unit_test(a_mismatch_is_in_the_log_whenever_it_begins),
		cmocka_unit_test(without_a_hello_the_log_says_why),
		cmocka_unit_test(a_strange_hello_ends_the_connection),
		cmocka_unit_test(a_hello_that_never_comes_is_not_waited_for),
		cmocka_unit_test(a_daemon_answers_nothing_but_a_hello_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
