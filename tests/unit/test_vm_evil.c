/* test_vm_evil.c - the host's questions to agents that lie: whatever is answered, each ends once,
 * in time, and leaves nothing behind. Conversations follow from a seed; a failure names it.
 *
 * HOTCELL_SEEDS (2000): how many, from HOTCELL_SEED (1) on.
 */
#include "tests/unit/check.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/fd_stream.h"
#include "vm/agent_exec.h"
#include "vm/agent_wake.h"

enum {
	SEEDS = 2000,
	GUARD_MS = 20 * 1000,  /* a question that never ends */
	QUESTION_MS = 200,     /* where the caller says how long */
	HANG_UP_MS = 3,        /* until the liar leaves, when it does not at once */
	SAY_MAX = 64 * 1024,   /* one answer */
	FLOOD_MAX = 512 * 1024 /* of one that does not end */
};

enum ending { THEN_WAIT, THEN_CLOSE, THEN_RESET, THEN_SHUT, THEN_FLOOD, ENDINGS };

static struct evil {
	struct loop *loop;
	struct stream *s; /* the liar's end; NULL: it has left */
	struct stream_user user;
	struct timer leave, guard;
	uint64_t state; /* of the dice */
	uint64_t seed;
	size_t flooded;
	bool floods, shut;
	int done;
	struct agent_identity identity;
} e;

/* --- dice --------------------------------------------------------------------------------- */

static uint64_t roll(uint64_t n)
{
	e.state ^= e.state << 13;
	e.state ^= e.state >> 7;
	e.state ^= e.state << 17;
	return e.state % n;
}

static struct bytes junk(void)
{
	static uint8_t room[4096];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = (uint8_t)roll(256);
	return (struct bytes){ room, 1 + roll(sizeof(room)) };
}

/* --- what is said ------------------------------------------------------------------------- */

static const char *const heads[] = {
	"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
	"HTTP/1.1 204 No Content\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\n",
	"HTTP/1.1 101 Switch\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
	"HTTP/1.1 500 No\r\ncontent-length: 17\r\n\r\n{\"message\":\"why\"}",
	"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n",
	"HTTP/1.0 200 OK\r\n\r\n",
};
static const char *const lengths[] = {
	"content-length: 18446744073709551615\r\n\r\n",
	"content-length: -1\r\n\r\n",
	"content-length: 5\r\n\r\n",
	"content-length: 5\r\ncontent-length: 6\r\n\r\n",
	"transfer-encoding: chunked\r\n\r\n",
	"transfer-encoding: gzip, chunked\r\n\r\n",
	"\r\n",
};
static const char *const bodies[] = {
	"{\"monotonicNs\":\"18446744073709551615\",\"realtimeNs\":\"1\"}",
	"{\"monotonicNs\":\"-9223372036854775808\",\"realtimeNs\":\"9223372036854775807\"}",
	"{\"monotonicNs\":1e308,\"realtimeNs\":null}",
	"{\"monotonicNs\":\"\",\"realtimeNs\":\"x\"}",
	"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
	"{\"a\":\"\\ud800\\u0000\"}",
	"ffffffffffffffff\r\n",
	"5\r\n\0\xff\xff\xff\xff\r\n",
	"0\r\n\r\n",
};

static void add(struct buf *b, struct bytes more)
{
	struct err err;

	(void)!buf_add(b, bytes_head(more, b->max - b->len), &err);
}

static void add_text(struct buf *b, const char *text)
{
	add(b, bytes_str(text));
}

static void add_answer(struct buf *b, struct bytes json)
{
	struct err err;

	add_text(b, heads[0]);
	(void)!buf_printf(b, &err, "content-length: %zu\r\n\r\n", json.len);
	add(b, json);
}

static void add_clock(struct buf *b)
{
	AUTO(buf_done) struct buf json = BUF_MAX(256);
	struct err err;

	(void)!buf_printf(&json, &err, "{\"monotonicNs\":\"%llu\",\"realtimeNs\":\"%llu\"}",
			  (unsigned long long)clock_mono_ns(), (unsigned long long)clock_wall_ns());
	add_answer(b, buf_view(&json));
}

/* One message of a process in an envelope, in a chunk. */
static void add_event(struct buf *b, uint8_t flags, const char *json)
{
	uint32_t n = (uint32_t)strlen(json);
	const uint8_t head[] = { flags, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8),
				 (uint8_t)n };
	struct err err;

	(void)!buf_printf(b, &err, "%x\r\n", n + (unsigned int)sizeof(head));
	add(b, (struct bytes){ head, sizeof(head) });
	add_text(b, json);
	add_text(b, "\r\n");
}

static void add_process(struct buf *b)
{
	add_text(b, "HTTP/1.1 200 OK\r\ncontent-type: application/connect+json\r\n"
		    "transfer-encoding: chunked\r\n\r\n");
	add_event(b, 0, "{\"event\":{\"start\":{\"pid\":7}}}");
	for (uint64_t n = roll(20); n > 0; n--)
		add_event(b, 0, "{\"event\":{\"data\":{\"stdout\":\"aGVsbG8=\"}}}");
	add_event(b, 0, "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}");
	add_event(b, 2, "{}");
	add_text(b, "0\r\n\r\n");
}

static bool asks(struct bytes request, const char *what)
{
	return memmem(request.ptr, request.len, what, strlen(what)) != NULL;
}

static void add_true_answer(struct buf *b, struct bytes request)
{
	if (asks(request, "/control/clock") || asks(request, "/control/identity"))
		add_clock(b);
	else if (asks(request, "/process.Process/Start"))
		add_process(b);
	else
		add_text(b, heads[1]);
}

static void add_lie(struct buf *b, struct bytes request)
{
	switch (roll(6)) {
	case 0:
		add(b, junk());
		break;
	case 1:
		add_text(b, heads[roll(COUNT(heads))]);
		break;
	case 2:
		add_text(b, heads[0]);
		add_text(b, lengths[roll(COUNT(lengths))]);
		add_text(b, bodies[roll(COUNT(bodies))]);
		break;
	case 3:
		add_answer(b, bytes_str(bodies[roll(COUNT(bodies))]));
		break;
	case 4:
		for (uint64_t n = roll(30); n > 0; n--)
			add_text(b, heads[2]);
		add_true_answer(b, request);
		break;
	default:
		add_true_answer(b, request);
		add_true_answer(b, request);
	}
}

static void spoil(struct buf *b)
{
	for (uint64_t n = roll(4); n > 0 && b->len > 0; n--) {
		size_t at = roll(b->len);

		if (roll(2))
			b->ptr[at] ^= (uint8_t)(1u << roll(8));
		else if (roll(2))
			b->len = at;
		else
			add(b, junk());
	}
}

/* --- the liar ----------------------------------------------------------------------------- */

static void part(enum ending how)
{
	if (!e.s)
		return;
	if (how == THEN_RESET)
		stream_abort(TAKE(e.s));
	else
		stream_close(TAKE(e.s));
}

static void on_leave(struct timer *t)
{
	(void)t;
	part(roll(2) ? THEN_RESET : THEN_CLOSE);
}

static void flood(void)
{
	struct err err;

	while (e.s && e.flooded < FLOOD_MAX && stream_queued(e.s) <= STREAM_LOW_WATER) {
		struct bytes b = junk();

		e.flooded += b.len;
		if (stream_write(e.s, b, &err) < 0)
			return;
	}
}

static void end_with(enum ending how)
{
	e.floods = how == THEN_FLOOD;
	e.shut = how == THEN_SHUT;
	if (how == THEN_CLOSE || how == THEN_RESET)
		part(how);
	else if (how == THEN_SHUT)
		stream_shut(e.s);
	else if (how == THEN_FLOOD)
		flood();
}

static void on_data(struct stream_user *u, struct bytes in)
{
	AUTO(buf_done) struct buf b = BUF_MAX(SAY_MAX);
	bool honest = roll(3) > 0; /* so that conversations come to their later questions */
	struct err err;

	(void)u;
	if (e.floods || e.shut)
		return;
	if (honest)
		add_true_answer(&b, in);
	else
		add_lie(&b, in);
	if (!honest && roll(2))
		spoil(&b);
	if (stream_write(e.s, buf_view(&b), &err) < 0)
		return;
	if (!honest)
		end_with((enum ending)roll(ENDINGS));
}

static void on_end(struct stream_user *u)
{
	(void)u;
	part(THEN_CLOSE);
}

static void on_drain(struct stream_user *u)
{
	(void)u;
	if (e.floods)
		flood();
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	(void)u;
	(void)err;
	part(THEN_RESET);
}

/* The host's end. */
static struct stream *meet(void)
{
	static const struct stream_user_ops ops = { on_data, on_end, on_drain, on_fail };
	struct stream *host;
	struct err err;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds),
			 0);
	assert_int_equal(fd_stream_open(e.loop, fds[0], FD_STREAM_BOTH, &host, &err), 0);
	assert_int_equal(fd_stream_open(e.loop, fds[1], FD_STREAM_BOTH, &e.s, &err), 0);
	e.user.ops = &ops;
	e.flooded = 0;
	e.floods = e.shut = false;
	e.done = 0;
	stream_set_user(e.s, &e.user);
	stream_read(e.s, true);
	timer_start(&e.leave, HANG_UP_MS);
	timer_start(&e.guard, GUARD_MS);
	return host;
}

/* --- the questions ------------------------------------------------------------------------ */

static void finished(const struct err *err)
{
	if (err)
		assert_true(err->code != ERR_NONE && err->msg[0] != '\0');
	e.done++;
	loop_stop(e.loop);
}

/* A question was asked (0), or refused at once: nothing may follow that. */
static void see_it_end(int rc)
{
	if (rc == 0)
		loop_run(e.loop);
	if (e.done != (rc == 0))
		fail_msg("seed %llu: ended %d times", (unsigned long long)e.seed, e.done);
	timer_stop(&e.leave);
	timer_stop(&e.guard);
	part(THEN_RESET);
}

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("seed %llu: nothing more happened", (unsigned long long)e.seed);
}

static void on_link(struct agent_link *l, const struct agent_answer *ret, const struct err *err)
{
	(void)l;
	assert_true((ret == NULL) == (err != NULL));
	finished(err);
}

static int ask(struct agent_link *l, uint64_t what, struct err *err)
{
	switch (what) {
	case 0:
		return agent_link_ask(l, AGENT_HEALTH, QUESTION_MS, on_link, err);
	case 1:
		return agent_link_ask(l, AGENT_CLOCK, QUESTION_MS, on_link, err);
	case 2:
		return agent_link_ask(l, AGENT_FREEZE, QUESTION_MS, on_link, err);
	default:
		return agent_link_identity(l, &e.identity, 1, QUESTION_MS, on_link, err);
	}
}

static void question(void)
{
	struct agent_link l = { 0 };
	struct err err;

	if (agent_link_open(&l, meet(), &err) < 0)
		fail_msg("%s", err.msg);
	see_it_end(ask(&l, roll(4), &err));
	agent_link_close(&l);
}

static void on_awake(struct agent_wake *w, const struct agent_clock *clock, const struct err *err)
{
	(void)w;
	assert_true((clock == NULL) == (err != NULL));
	finished(err);
}

static void wake(void)
{
	struct agent_wake w = { 0 };
	struct steps steps;
	struct err err;

	steps_begin(&steps);
	const struct agent_wake_spec spec = { &e.identity, roll(2), &steps };

	see_it_end(agent_wake_start(&w, meet(), &spec, on_awake, &err));
	agent_wake_cancel(&w);
}

static void on_ran(struct agent_exec *x, const struct agent_exec_result *ret, const struct err *err)
{
	(void)x;
	assert_true((ret == NULL) == (err != NULL));
	if (ret)
		assert_true(ret->out.len <= AGENT_OUTPUT_MAX && ret->err.len <= AGENT_OUTPUT_MAX);
	finished(err);
}

static void run_command(void)
{
	struct agent_exec_spec spec = { .command = BYTES_LIT("true"),
					.detach = roll(4) == 0,
					.deadline_ms = QUESTION_MS };
	struct agent_exec x = { 0 };
	struct err err;

	see_it_end(agent_exec_start(&x, meet(), &spec, on_ran, &err));
	agent_exec_cancel(&x);
}

/* --- all of them -------------------------------------------------------------------------- */

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	uint64_t n;

	return text && bytes_to_u64(bytes_str(text), &n) ? n : otherwise;
}

static size_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void agents_that_lie(void **state)
{
	static void (*const questions[])(void) = { question, wake, run_command };
	uint64_t first = from_environment("HOTCELL_SEED", 1);
	uint64_t seeds = from_environment("HOTCELL_SEEDS", SEEDS);
	size_t held;
	struct err err;

	(void)state;
	assert_int_equal(loop_open(&e.loop, &err), 0);
	loop_free(e.loop); /* what the library keeps for ever, it has now */
	held = count_fds();
	assert_int_equal(loop_open(&e.loop, &err), 0);
	timer_init(&e.leave, e.loop, on_leave);
	timer_init(&e.guard, e.loop, on_guard);
	assert_int_equal(
		agent_identity_make(&e.identity, BYTES_LIT("box1"), BYTES_LIT("base"), &err), 0);
	for (e.seed = first; e.seed < first + seeds; e.seed++) {
		e.state = e.seed * 0x9e3779b97f4a7c15u | 1;
		questions[roll(COUNT(questions))]();
	}
	agent_identity_done(&e.identity);
	loop_free(e.loop);
	assert_int_equal(count_fds(), held);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(agents_that_lie) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
