/* test_vm_agent.c - calls to the agent: reaching it, its clock, its identity, hostile answers. */
#include "tests/unit/vm_mock_agent.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vm/agent_dial.h"
#include "vm/agent_exec.h"
#include "vm/agent_upload.h"
#include "vm/agent_wake.h"

enum { GUARD_MS = 20000, MS = 5000, UPLOAD = 200 * 1024 };

static struct scene {
	struct loop *loop;
	struct mock_agent agent;
	struct timer guard, later;
	struct agent_dial dial;
	struct agent_wake wake;
	struct agent_exec exec;
	struct agent_upload upload;
	struct agent_identity identity;
	struct steps steps;
	struct stream *stream;
	struct agent_clock clock;
	struct agent_exec_result result;
	char out[64], said[64];
	int done;
	struct err err;
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static void scene_open(const struct mock_route *routes, size_t n)
{
	struct err err;

	s = (struct scene){ 0 };
	assert_int_equal(loop_open(&s.loop, &err), 0);
	mock_agent_start(&s.agent, s.loop, routes, n);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	steps_begin(&s.steps);
	assert_int_equal(
		agent_identity_make(&s.identity, BYTES_LIT("box-1"), BYTES_LIT("base"), &err), 0);
}

static void scene_end(void)
{
	timer_stop(&s.guard);
	mock_agent_end(&s.agent);
	agent_identity_done(&s.identity);
	loop_free(s.loop);
}

static void finished(const struct err *err)
{
	s.done++;
	if (err)
		s.err = *err;
	loop_stop(s.loop);
}

static void on_dialled(struct agent_dial *d, struct stream *stream, const struct err *err)
{
	(void)d;
	s.stream = stream;
	finished(err);
}

static struct stream *dial(void)
{
	struct err err;

	assert_int_equal(
		agent_dial_start(&s.dial,
				 &(struct agent_dial_spec){ s.loop, mock_socket(), &s.agent.at,
							    AGENT_DIAL_BOOT_MS, MS },
				 on_dialled, &err),
		0);
	loop_run(s.loop);
	if (!s.stream)
		fail_msg("%s", s.err.msg);
	s.done = 0;
	return TAKE(s.stream);
}

/* --- reaching it -------------------------------------------------------------------------- */

static void nobody_there_is_a_failure_in_time(void **state)
{
	static const struct mock_route routes[] = { MOCK_AGENT_ROUTES };
	uint64_t began, took;
	struct err err;

	(void)state;
	scene_open(routes, COUNT(routes));
	listener_close(&s.agent.door);
	began = clock_mono_ns();
	assert_int_equal(
		agent_dial_start(&s.dial,
				 &(struct agent_dial_spec){ s.loop, mock_socket(), &s.agent.at,
							    AGENT_DIAL_BOOT_MS, 1000 },
				 on_dialled, &err),
		0);
	loop_run(s.loop);
	took = (clock_mono_ns() - began) / NSEC_PER_MSEC;
	assert_null(s.stream);
	assert_int_equal(s.done, 1);
	/* the last try may have been refused, or cut short by the end */
	assert_true(s.err.code == ERR_UNAVAILABLE || s.err.code == ERR_TIMEOUT);
	assert_true(took >= 600 && took < 10000);
	scene_end();
}

static void open_the_door(struct timer *t)
{
	static const struct listener_ops ops = { mock_accept };
	struct err err;

	(void)t;
	assert_int_equal(
		listener_open(&s.agent.door, s.loop, &ops, &s.agent.at, 0, MOCK_CONNS, &err), 0);
}

/* One socket serves for every attempt: refused at first, accepted when the agent is up. */
static void an_agent_that_comes_up_later_is_reached(void **state)
{
	static const struct mock_route routes[] = { MOCK_AGENT_ROUTES };

	(void)state;
	scene_open(routes, COUNT(routes));
	listener_close(&s.agent.door);
	timer_init(&s.later, s.loop, open_the_door);
	timer_start(&s.later, 150);
	stream_abort(dial());
	scene_end();
}

static struct {
	int fd, first;
} silent = { -1, -1 }; /* a door that hears nothing while one waits before it */

static void hear_again(struct timer *t)
{
	(void)t;
	close(accept4(silent.fd, NULL, NULL, SOCK_CLOEXEC));
}

/* Milliseconds until a guest is reached that hears nothing for `silent_ms`. */
static uint64_t reach_silent(uint64_t silent_ms)
{
	static const struct mock_route routes[] = { MOCK_AGENT_ROUTES };
	struct sockaddr *at = (struct sockaddr *)&s.agent.at.at;
	uint64_t began;

	scene_open(routes, COUNT(routes));
	listener_close(&s.agent.door);
	silent.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	silent.first = mock_socket();
	assert_int_equal(setsockopt(silent.fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)),
			 0);
	assert_int_equal(bind(silent.fd, at, s.agent.at.len), 0);
	assert_int_equal(listen(silent.fd, 0), 0);
	assert_true(connect(silent.first, at, s.agent.at.len) == 0 || errno == EINPROGRESS);
	timer_init(&s.later, s.loop, hear_again);
	timer_start(&s.later, silent_ms);
	began = clock_mono_ns();
	stream_abort(dial());
	began = clock_mono_ns() - began;
	close(silent.fd);
	close(silent.first);
	scene_end();
	return began / NSEC_PER_MSEC;
}

/* A packet that was dropped is not waited for: the next attempt sends another. The system itself
 * would do so after a second. */
static void a_silent_guest_is_tried_again(void **state)
{
	(void)state;
	assert_true(reach_silent(AGENT_DIAL_BOOT_MS - 100) < 950);
}

/* A guest that took two seconds to boot is not reached a second later. */
static void a_guest_that_boots_is_tried_often(void **state)
{
	(void)state;
	assert_true(reach_silent(1900) < 1900 + 700);
}

static void a_cancelled_dial_leaves_nothing(void **state)
{
	static const struct mock_route routes[] = { MOCK_AGENT_ROUTES };
	struct err err;

	(void)state;
	scene_open(routes, COUNT(routes));
	assert_int_equal(
		agent_dial_start(&s.dial,
				 &(struct agent_dial_spec){ s.loop, mock_socket(), &s.agent.at,
							    AGENT_DIAL_BOOT_MS, MS },
				 on_dialled, &err),
		0);
	agent_dial_cancel(&s.dial);
	agent_dial_cancel(&s.dial);
	scene_end();
	assert_int_equal(s.done, 0);
}

/* --- waking ------------------------------------------------------------------------------- */

static void on_awake(struct agent_wake *w, const struct agent_clock *clock, const struct err *err)
{
	(void)w;
	assert_true((clock == NULL) == (err != NULL));
	if (clock)
		s.clock = *clock;
	finished(err);
}

static void wake(bool health)
{
	struct err err;

	const struct agent_wake_spec spec = { &s.identity, health, &s.steps };

	if (agent_wake_start(&s.wake, dial(), &spec, on_awake, &err) < 0)
		fail_msg("%s", err.msg);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
}

static json_t *told(const char *member)
{
	static json_t *v;
	struct err err;

	json_decref(v);
	v = NULL;
	if (member)
		assert_int_equal(json_decode(buf_view(&s.agent.body), 65536, 4, &v, &err), 0);
	return member ? json_object_get(v, member) : NULL;
}

static void a_machine_is_given_its_time_and_identity(void **state)
{
	static const struct mock_route routes[] = { MOCK_AGENT_ROUTES };
	int64_t truth, offset, wrong;

	(void)state;
	scene_open(routes, COUNT(routes));
	s.identity.env = json_pack("{s:s}", "A", "1");
	wake(false);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.agent.n_log, 2);
	assert_string_equal(s.agent.log[0], "GET /control/clock");
	assert_string_equal(s.agent.log[1], "POST /control/identity");
	assert_null(memmem(s.agent.head.ptr, s.agent.head.len, "x-hotcell-control", 17));
	assert_string_equal(json_string_value(told("hostname")), "box-1");
	assert_string_equal(json_string_value(told("machineId")), s.identity.machine_id);
	assert_string_equal(json_string_value(told("bootId")), s.identity.boot_id);
	assert_string_equal(json_string_value(told("controlToken")), s.identity.control_token);
	assert_string_equal(json_string_value(json_object_get(told("env"), "A")), "1");
	assert_int_equal(strlen(json_string_value(told("entropy"))), 88);
	offset = strtoll(json_string_value(told("clockOffsetNs")), NULL, 10);
	assert_true(offset == s.clock.offset_ns);
	truth = (int64_t)(clock_wall_ns() - clock_mono_ns());
	wrong = offset > truth ? offset - truth : truth - offset;
	assert_true(wrong <= (int64_t)s.clock.uncertainty_ns + 1000000);
	assert_true(steps_find(&s.steps, "identity") >= steps_find(&s.steps, "clock"));
	told(NULL);
	scene_end();
}

static void health_is_asked_with_the_new_token(void **state)
{
	static const struct mock_route routes[] = { MOCK_AGENT_ROUTES };

	(void)state;
	scene_open(routes, COUNT(routes));
	wake(true);
	assert_int_equal(s.agent.n_log, 3);
	assert_int_equal(s.agent.n_conns, 1);
	assert_string_equal(s.agent.log[2], "GET /health");
	assert_non_null(memmem(s.agent.head.ptr, s.agent.head.len, s.identity.control_token,
			       AGENT_TOKEN_LENGTH));
	scene_end();
}

static void a_slow_probe_is_asked_again_and_the_best_counts(void **state)
{
	static const struct mock_route routes[] = {
		{ .request = "GET /control/clock", .delay_ms = 150, .delay_first = 2 },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	scene_open(routes, COUNT(routes));
	wake(false);
	assert_int_equal(s.clock.probes, 3);
	assert_true(s.clock.uncertainty_ns < AGENT_CLOCK_GOOD_MS * NSEC_PER_MSEC);
	scene_end();
}

static void a_worse_probe_does_not_replace_a_better_one(void **state)
{
	static const struct mock_route routes[] = {
		{ .request = "GET /control/clock",
		  .delay_ms = 90,
		  .delay_first = 1,
		  .then_ms = 600 },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	scene_open(routes, COUNT(routes));
	wake(false);
	assert_true(s.clock.probes >= AGENT_CLOCK_PROBES_MAX);
	assert_true(s.clock.uncertainty_ns < 250 * NSEC_PER_MSEC);
	scene_end();
}

static void probes_are_bounded(void **state)
{
	static const struct mock_route routes[] = {
		{ .request = "GET /control/clock", .delay_ms = 100 },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	scene_open(routes, COUNT(routes));
	wake(false);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_true(s.clock.probes >= AGENT_CLOCK_PROBES_MAX);
	assert_true(s.clock.probes <= AGENT_CLOCK_TRIES_MAX);
	assert_true(s.clock.uncertainty_ns >= 40 * NSEC_PER_MSEC);
	scene_end();
}

/* Everything is slow for a while, as after a resume on a host that swaps. */
static void a_clock_beyond_the_promise_is_asked_for_again(void **state)
{
	static const struct mock_route routes[] = {
		{ .request = "GET /control/clock",
		  .delay_ms = 300,
		  .delay_first = AGENT_CLOCK_PROBES_MAX + 2,
		  .then_ms = 0 },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	scene_open(routes, COUNT(routes));
	wake(false);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_true(s.clock.probes > AGENT_CLOCK_PROBES_MAX);
	assert_true(s.clock.uncertainty_ns < 150 * NSEC_PER_MSEC);
	scene_end();
}

#define JSON_ANSWER(json, n) MOCK_OK(MOCK_LENGTH(n) json)

static void a_hostile_answer_fails_the_wake(void **state)
{
	static const struct {
		const char *name;
		struct mock_route route;
		enum err_code code;
		const char *why;
	} rows[] = {
		{ "not HTTP", { "GET /control/clock", "garbage\r\n\r\n" }, ERR_INVALID, "clock" },
		{ "not JSON",
		  { "GET /control/clock", JSON_ANSWER("hello", "5") },
		  ERR_INTERNAL,
		  "agent: clock: JSON" },
		{ "no clock",
		  { "GET /control/clock", JSON_ANSWER("{}", "2") },
		  ERR_INTERNAL,
		  "monotonicNs is missing" },
		{ "negative",
		  { "GET /control/clock",
		    JSON_ANSWER("{\"monotonicNs\":\"-1\",\"realtimeNs\":\"1\"}", "37") },
		  ERR_INTERNAL,
		  "monotonicNs must be" },
		{ "cut off",
		  { .request = "GET /control/clock",
		    .answer = JSON_ANSWER("{}", "3"),
		    .close = true },
		  ERR_UNAVAILABLE,
		  "clock" },
		{ "closes",
		  { .request = "GET /control/clock", .answer = "", .close = true },
		  ERR_UNAVAILABLE,
		  "clock" },
		{ "another status",
		  { "GET /control/clock", MOCK_NO_CONTENT },
		  ERR_INTERNAL,
		  "status 204" },
		{ "identity refused",
		  { "POST /control/identity", "HTTP/1.1 500 No\r\ncontent-length: 37\r\n\r\n"
					      "{\"code\":500,\"message\":\"clock: EPERM\"}" },
		  ERR_INTERNAL,
		  "agent: identity: status 500: clock: EPERM" },
		{ "identity hidden",
		  { "POST /control/identity", "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n" },
		  ERR_INTERNAL,
		  "status 404" },
		{ "unhealthy",
		  { "GET /health", "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n" },
		  ERR_INTERNAL,
		  "agent: health: status 503" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		const struct mock_route routes[] = { row->route, MOCK_AGENT_ROUTES };

		scene_open(routes, COUNT(routes));
		wake(true);
		if (s.err.code != row->code || !strstr(s.err.msg, row->why))
			fail_msg("%s: \"%s\"", err_name(s.err.code), s.err.msg);
		scene_end();
	}
}

static void an_answer_too_large_is_refused(void **state)
{
	static char large[2 * AGENT_ANSWER_MAX];
	static const struct mock_route routes[] = {
		{ "GET /control/clock", large, sizeof(large) },
		MOCK_AGENT_ROUTES,
	};

	(void)state;
	memset(large, ' ', sizeof(large));
	memcpy(large, "HTTP/1.1 200 OK\r\n\r\n", strlen("HTTP/1.1 200 OK\r\n\r\n"));
	scene_open(routes, COUNT(routes));
	wake(true);
	assert_int_equal(s.err.code, ERR_EXHAUSTED);
	scene_end();
}

static void the_offset_is_never_out_of_range(void **state)
{
	static const struct {
		const char *name;
		struct agent_answer answer;
		bool ok;
		int64_t offset;
		uint64_t uncertainty;
	} rows[] = {
		{ "plain", { 100, 0, 1000, 1010 }, true, 905, 5 },
		{ "guest far ahead", { INT64_MAX, 0, 1000, 1010 }, true, 1005 - INT64_MAX, 5 },
		{ "host set back", { 100, 0, 1010, 1000 }, false, 0, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct agent_clock c = { 0 };

		assert_int_equal(agent_clock_read(&row->answer, &c), row->ok);
		if (row->ok) {
			assert_true(c.offset_ns == row->offset);
			assert_true(c.uncertainty_ns == row->uncertainty);
		}
	}
}

static void two_identities_have_nothing_in_common(void **state)
{
	struct agent_identity a, b;
	struct err err;

	(void)state;
	assert_int_equal(agent_identity_make(&a, BYTES_LIT("x"), BYTES_LIT("t"), &err), 0);
	assert_int_equal(agent_identity_make(&b, BYTES_LIT("x"), BYTES_LIT("t"), &err), 0);
	assert_string_not_equal(a.machine_id, b.machine_id);
	assert_string_not_equal(a.boot_id, b.boot_id);
	assert_string_not_equal(a.access_token, b.access_token);
	assert_string_not_equal(a.control_token, b.control_token);
	assert_string_not_equal(a.access_token, a.control_token);
	assert_memory_not_equal(a.entropy, b.entropy, sizeof(a.entropy));
	assert_int_equal(strlen(a.boot_id), 36);
	assert_int_equal(a.boot_id[14], '4');
	assert_non_null(strchr("89ab", a.boot_id[19]));
	assert_int_equal(agent_identity_make(&a, BYTES_LIT(""), BYTES_LIT("t"), &err), -1);
	agent_identity_done(&a);
	agent_identity_done(&b);
	assert_int_equal(a.control_token[0], '\0');
}

/* --- exec --------------------------------------------------------------------------------- */

static void on_exec(struct agent_exec *e, const struct agent_exec_result *ret,
		    const struct err *err)
{
	(void)e;
	if (ret) {
		s.result = *ret;
		assert_true(bytes_to_str(ret->out, s.out, sizeof(s.out)));
		assert_true(bytes_to_str(ret->err, s.said, sizeof(s.said)));
	}
	finished(err);
}

#define STREAM "HTTP/1.1 200 OK\r\ncontent-type: application/connect+json\r\n\r\n"
#define START  "\0\0\0\0\x1e{\"event\":{\"start\":{\"pid\":42}}}"
#define OUT    "\0\0\0\0\x24{\"event\":{\"data\":{\"stdout\":\"aGk=\"}}}"
#define ERROUT "\0\0\0\0\x24{\"event\":{\"data\":{\"stderr\":\"bm8=\"}}}"
#define BOTH   "\0\0\0\0\x34{\"event\":{\"data\":{\"stdout\":\"aGk=\",\"stderr\":\"bm8=\"}}}"
#define ALIVE  "\0\0\0\0\x1a{\"event\":{\"keepalive\":{}}}"
#define END                                                                                  \
	"\0\0\0\0\x47{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit " \
	"status 3\"}}}"
#define LAST "\2\0\0\0\2{}"
#define ROUTE(b)                                    \
	{ .request = "POST /process.Process/Start", \
	  .answer = b,                              \
	  .answer_len = sizeof(b) - 1,              \
	  .close = true }

static void exec_with(const struct mock_route *route, bool detach)
{
	const struct agent_exec_spec spec = { .command = BYTES_LIT("true"),
					      .user = BYTES_LIT("user"),
					      .access_token = BYTES_LIT("secret"),
					      .timeout_ms = 1000,
					      .deadline_ms = MS,
					      .detach = detach };
	struct err err;

	scene_open(route, 1);
	if (agent_exec_start(&s.exec, dial(), &spec, on_exec, &err) < 0)
		fail_msg("%s", err.msg);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
}

/* "o:" or "e:" and what was said, one after the other. */
static char heard[256];
static int cancel_after; /* pieces; 0: never */

static void on_output(struct agent_exec *e, enum agent_output which, struct bytes piece)
{
	size_t at = strlen(heard);

	snprintf(heard + at, sizeof(heard) - at, "%s%.*s ",
		 which == AGENT_STDOUT ? "o:" : "e:", (int)piece.len, (const char *)piece.ptr);
	if (cancel_after > 0 && --cancel_after == 0) {
		agent_exec_cancel(e);
		finished(NULL);
	}
}

static void start_heard(const struct mock_route *route)
{
	const struct agent_exec_spec spec = { .command = BYTES_LIT("true"),
					      .cwd = BYTES_LIT("/srv"),
					      .deadline_ms = MS,
					      .on_output = on_output,
					      .keep_max = 3 };
	struct err err;

	heard[0] = '\0';
	scene_open(route, 1);
	if (agent_exec_start(&s.exec, dial(), &spec, on_exec, &err) < 0)
		fail_msg("%s", err.msg);
}

static void output_is_handed_on_as_it_comes(void **state)
{
	static const struct mock_route route = ROUTE(STREAM START OUT ERROUT OUT BOTH END LAST);

	(void)state;
	cancel_after = 0;
	start_heard(&route);
	loop_run(s.loop);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_string_equal(heard, "o:hi e:no o:hi o:hi e:no ");
	assert_string_equal(s.out, "hih");
	assert_string_equal(s.said, "non");
	assert_true(s.result.cut_off);
	assert_int_equal(s.result.said, 10);
	assert_non_null(memmem(s.agent.body.ptr, s.agent.body.len, "\"cwd\":\"/srv\"", 12));
	scene_end();
}

/* In the middle of one message, too: neither its other half nor the end is told. */
static void it_may_be_cancelled_by_what_it_says(void **state)
{
	static const struct mock_route route = ROUTE(STREAM START OUT BOTH OUT END LAST);

	(void)state;
	for (int after = 1; after <= 3; after++) {
		cancel_after = after;
		start_heard(&route);
		loop_run(s.loop);
		assert_int_equal(s.done, 1);
		assert_null(s.exec.client);
		assert_string_equal(heard, after == 1   ? "o:hi "
					   : after == 2 ? "o:hi o:hi "
							: "o:hi o:hi e:no ");
		scene_end();
	}
}

static void on_later(struct timer *t)
{
	(void)t;
	finished(NULL);
}

/* It says 60 messages, of which a paused one reads none. */
static void a_paused_one_is_not_read(void **state)
{
	static char answer[sizeof(STREAM START) + 60 * sizeof(OUT) + sizeof(END LAST)];
	struct mock_route route = ROUTE(STREAM);
	size_t n = 0;

	(void)state;
	memcpy(answer, STREAM START, n = sizeof(STREAM START) - 1);
	for (int i = 0; i < 60; i++, n += sizeof(OUT) - 1)
		memcpy(answer + n, OUT, sizeof(OUT) - 1);
	memcpy(answer + n, END LAST, sizeof(END LAST) - 1);
	route.answer = answer;
	route.answer_len = n + sizeof(END LAST) - 1;
	cancel_after = 0;
	start_heard(&route);
	agent_exec_pause(&s.exec, true);
	timer_init(&s.later, s.loop, on_later);
	timer_start(&s.later, 300);
	loop_run(s.loop);
	assert_string_equal(heard, "");
	agent_exec_pause(&s.exec, false);
	loop_run(s.loop);
	assert_int_equal(s.done, 2);
	assert_int_equal(s.result.said, 120);
	scene_end();
}

static void a_process_is_run_and_its_output_kept(void **state)
{
	static const struct mock_route route = ROUTE(STREAM START OUT ALIVE ERROUT OUT END LAST);

	(void)state;
	exec_with(&route, false);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.result.pid, 42);
	assert_int_equal(s.result.exit_code, 3);
	assert_true(s.result.exited);
	assert_string_equal(s.result.status, "exit status 3");
	assert_string_equal(s.out, "hihi");
	assert_string_equal(s.said, "no");
	assert_non_null(memmem(s.agent.head.ptr, s.agent.head.len, "Basic dXNlcjo=", 14));
	assert_non_null(memmem(s.agent.head.ptr, s.agent.head.len, "connect-timeout-ms: 1000", 24));
	assert_non_null(memmem(s.agent.head.ptr, s.agent.head.len, "x-access-token: secret", 22));
	assert_non_null(memmem(s.agent.body.ptr, s.agent.body.len, "[\"-l\",\"-c\",\"true\"]", 18));
	scene_end();
}

static void a_detached_process_is_left_when_it_runs(void **state)
{
	static const struct mock_route route = {
		.request = "POST /process.Process/Start",
		.answer = STREAM START,
		.answer_len = sizeof(STREAM START) - 1,
	};

	(void)state;
	exec_with(&route, true);
	assert_int_equal(s.err.code, ERR_NONE);
	assert_int_equal(s.result.pid, 42);
	scene_end();
}

static void a_hostile_stream_fails_the_exec(void **state)
{
	static const struct {
		const char *name;
		struct mock_route route;
		const char *why;
	} rows[] = {
		{ "another status", ROUTE("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"),
		  "status 404" },
		{ "no end message", ROUTE(STREAM START END), "no end message" },
		{ "output before start", ROUTE(STREAM OUT), "output before the start" },
		{ "end before start", ROUTE(STREAM END), "an end that is not one" },
		{ "two ends", ROUTE(STREAM START END END), "an end that is not one" },
		{ "last before end", ROUTE(STREAM START LAST), "ended before the process" },
		{ "unknown flags", ROUTE(STREAM "\x40\0\0\0\2{}"), "unknown envelope flags" },
		{ "4 GiB message", ROUTE(STREAM "\0\377\377\377\377"), "4294967295 bytes" },
		{ "not JSON", ROUTE(STREAM "\0\0\0\0\2xx"), "JSON" },
		{ "no event", ROUTE(STREAM "\0\0\0\0\2{}"), "event is missing" },
		{ "pid 0", ROUTE(STREAM "\0\0\0\0\x1d{\"event\":{\"start\":{\"pid\":0}}}"),
		  "pid must be" },
		{ "not base64",
		  ROUTE(STREAM START "\0\0\0\0\x23{\"event\":{\"data\":{\"stdout\":\"a*c\"}}}"),
		  "output" },
		{ "an error at the end",
		  ROUTE(STREAM "\2\0\0\0\x32{\"error\":{\"code\":\"not_found\",\"message\":\"no "
			       "bash\"}}"),
		  "not_found: no bash" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		exec_with(&row->route, false);
		assert_int_equal(s.err.code, ERR_INTERNAL);
		if (!strstr(s.err.msg, row->why))
			fail_msg("\"%s\" lacks \"%s\"", s.err.msg, row->why);
		scene_end();
	}
}

static void a_process_cut_by_its_deadline_is_a_timeout(void **state)
{
	static const struct mock_route route =
		ROUTE(STREAM START "\2\0\0\0\x3b{\"error\":{\"code\":\"deadline_exceeded\","
				   "\"message\":\"too late\"}}");

	(void)state;
	exec_with(&route, false);
	assert_int_equal(s.err.code, ERR_TIMEOUT);
	scene_end();
}

/* --- upload ------------------------------------------------------------------------------- */

static uint8_t byte_at(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

static int file_of(size_t n)
{
	int fd = memfd_create("upload", MFD_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(write(fd, &(uint8_t){ byte_at(i) }, 1), 1);
	return fd;
}

static void on_uploaded(struct agent_upload *u, const struct err *err)
{
	(void)u;
	finished(err);
}

static void upload_with(const struct mock_route *route, size_t bytes, size_t said, uint64_t ms)
{
	const struct agent_upload_spec spec = { .file = file_of(bytes),
						.bytes = said,
						.path = BYTES_LIT("/tmp/a-b/c.tar"),
						.user = BYTES_LIT("root"),
						.access_token = BYTES_LIT("secret"),
						.deadline_ms = ms };
	struct err err;

	scene_open(route, 1);
	if (agent_upload_start(&s.upload, dial(), &spec, on_uploaded, &err) < 0)
		fail_msg("%s", err.msg);
}

static void a_file_arrives_whole(void **state)
{
	static const struct mock_route route = { .request = "POST /files",
						 .answer = MOCK_OK(MOCK_LENGTH("2") "[]") };

	(void)state;
	upload_with(&route, UPLOAD, UPLOAD, MS);
	loop_run(s.loop);
	assert_int_equal(s.done, 1);
	if (s.err.code != ERR_NONE)
		fail_msg("%s", s.err.msg);
	assert_string_equal(s.agent.log[0], "POST /files?path=/tmp/a-b/c.tar&username=root");
	assert_non_null(memmem(s.agent.head.ptr, s.agent.head.len, "secret", 6));
	assert_int_equal(s.agent.body.len, UPLOAD);
	for (size_t i = 0; i < UPLOAD; i++)
		assert_int_equal(s.agent.body.ptr[i], byte_at(i));
	scene_end();
}

/* Which of the two is noticed first, the guest's answer or the end of the file, is chance. */
static void a_guest_may_answer_before_the_end_is_read(void **state)
{
	static const struct mock_route route = { .request = "POST /files",
						 .answer = MOCK_OK(MOCK_LENGTH("2") "[]") };

	(void)state;
	for (int i = 0; i < 300; i++) {
		upload_with(&route, 1, 1, MS);
		loop_run(s.loop);
		assert_int_equal(s.done, 1);
		if (s.err.code != ERR_NONE)
			fail_msg("round %d: %s", i, s.err.msg);
		scene_end();
	}
}

static void what_a_guest_says_of_a_file(void **state)
{
	static const struct {
		struct mock_route route;
		size_t bytes, said;
		uint64_t ms;
		enum err_code code;
		const char *says;
	} rows[] = {
		{ { .request = "POST /files",
		    .answer = "HTTP/1.1 507 Full\r\n" MOCK_LENGTH(
			    "32") "{\"code\":507,\"message\":\"no room\"}" },
		  UPLOAD,
		  UPLOAD,
		  MS,
		  ERR_EXHAUSTED,
		  "no room" },
		{ { .request = "POST /files",
		    .answer = "HTTP/1.1 400 Bad\r\n" MOCK_LENGTH("3") "no!" },
		  UPLOAD,
		  UPLOAD,
		  MS,
		  ERR_INVALID,
		  "status 400: no!" },
		{ { .request = "POST /files", .hang = true },
		  UPLOAD,
		  UPLOAD,
		  300,
		  ERR_TIMEOUT,
		  "" },
		{ { .request = "POST /files", .hang = true },
		  UPLOAD,
		  UPLOAD + 1,
		  MS,
		  ERR_INTERNAL,
		  "shorter" },
		{ { .request = "POST /files", .hang = true },
		  UPLOAD,
		  UPLOAD - 1,
		  MS,
		  ERR_INTERNAL,
		  "grew" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		upload_with(&rows[i].route, rows[i].bytes, rows[i].said, rows[i].ms);
		loop_run(s.loop);
		assert_int_equal(s.done, 1);
		if (s.err.code != rows[i].code || !strstr(s.err.msg, rows[i].says))
			fail_msg("row %zu: %d, %s", i, (int)s.err.code, s.err.msg);
		scene_end();
	}
}

static void on_enough(struct timer *t)
{
	(void)t;
	agent_upload_cancel(&s.upload);
	loop_stop(s.loop);
}

/* The thread waits for room that never comes: a cancel ends both. */
static void an_upload_is_cancelled(void **state)
{
	static const struct mock_route route = { .request = "POST /files", .hang = true };

	(void)state;
	upload_with(&route, UPLOAD, UPLOAD, MS);
	stream_read(s.agent.conns[0].s, false);
	timer_init(&s.later, s.loop, on_enough);
	timer_start(&s.later, 50);
	loop_run(s.loop);
	assert_int_equal(s.done, 0);
	scene_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_there_is_a_failure_in_time),
		cmocka_unit_test(an_agent_that_comes_up_later_is_reached),
		cmocka_unit_test(a_silent_guest_is_tried_again),
		cmocka_unit_test(a_guest_that_boots_is_tried_often),
		cmocka_unit_test(a_cancelled_dial_leaves_nothing),
		cmocka_unit_test(a_machine_is_given_its_time_and_identity),
		cmocka_unit_test(health_is_asked_with_the_new_token),
		cmocka_unit_test(a_slow_probe_is_asked_again_and_the_best_counts),
		cmocka_unit_test(a_worse_probe_does_not_replace_a_better_one),
		cmocka_unit_test(probes_are_bounded),
		cmocka_unit_test(a_clock_beyond_the_promise_is_asked_for_again),
		cmocka_unit_test(a_hostile_answer_fails_the_wake),
		cmocka_unit_test(an_answer_too_large_is_refused),
		cmocka_unit_test(the_offset_is_never_out_of_range),
		cmocka_unit_test(two_identities_have_nothing_in_common),
		cmocka_unit_test(a_process_is_run_and_its_output_kept),
		cmocka_unit_test(output_is_handed_on_as_it_comes),
		cmocka_unit_test(it_may_be_cancelled_by_what_it_says),
		cmocka_unit_test(a_paused_one_is_not_read),
		cmocka_unit_test(a_detached_process_is_left_when_it_runs),
		cmocka_unit_test(a_hostile_stream_fails_the_exec),
		cmocka_unit_test(a_file_arrives_whole),
		cmocka_unit_test(a_guest_may_answer_before_the_end_is_read),
		cmocka_unit_test(what_a_guest_says_of_a_file),
		cmocka_unit_test(an_upload_is_cancelled),
		cmocka_unit_test(a_process_cut_by_its_deadline_is_a_timeout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
