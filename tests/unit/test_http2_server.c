/* test_http2_server.c - HTTP/2: the same requests, answers, limits and times as with HTTP/1.1. */
#include "tests/unit/h2_client.h"

#define LIMITS (&HTTP_LIMITS)

static struct bytes many(size_t n)
{
	static uint8_t block[1024 * 1024];

	assert_true(n <= sizeof(block));
	memset(block, 'm', n);
	return (struct bytes){ block, n };
}

static void requests_and_answers(struct h2_scene *x)
{
	struct h2_seen *hello, *head, *post, *echo, *missing, *early, *limit, *forgot, *field;

	hello = h2_get(&x->c, "/hello");
	head = h2_ask(&x->c, "HEAD", "/hello", (struct bytes){ 0 }, false);
	post = h2_ask(&x->c, "POST", "/length", BYTES_LIT("four"), false);
	echo = h2_ask(&x->c, "POST", "/echo", BYTES_LIT("said"), false);
	missing = h2_get(&x->c, "/nothing");
	early = h2_ask(&x->c, "POST", "/early", BYTES_LIT("ignored"), false);
	limit = h2_ask(&x->c, "POST", "/limit", BYTES_LIT("more than ten bytes"), false);
	forgot = h2_get(&x->c, "/forget");
	field = h2_get(&x->c, "/field");
	H2_UNTIL(x, x->c.n_closed == 9);
	assert_string_equal(hello->status, "200");
	assert_true(h2_heard(hello, "hello"));
	assert_non_null(strstr(hello->fields, "content-length: 5\n"));
	assert_non_null(strstr(hello->fields, "date: "));
	assert_string_equal(head->status, "200");
	assert_non_null(strstr(head->fields, "content-length: 5\n"));
	assert_true(h2_heard(head, ""));
	assert_true(h2_heard(post, "4"));
	assert_true(h2_heard(echo, "said"));
	assert_string_equal(missing->status, "404");
	assert_true(h2_heard(early, "hello"));
	assert_string_equal(limit->status, "413");
	assert_string_equal(forgot->status, "500");
	assert_string_equal(field->status, "500");
	for (size_t i = 0; i < x->c.n_seen; i++)
		assert_true(x->c.seen[i].ended && x->c.seen[i].code == NGHTTP2_NO_ERROR);
	assert_int_equal(x->sv.http.counts[HTTP_2].connections, 1);
	assert_int_equal(x->sv.http.counts[HTTP_2].requests, 9);
	assert_int_equal(x->sv.http.counts[HTTP_1_1].requests, 0);
}

static void every_kind_of_request(void **state)
{
	struct h2_scene x;

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	requests_and_answers(&x);
	h2_scene_close(&x);
}

static void every_split(void **state)
{
	struct h2_scene x;

	(void)state;
	for (size_t piece = 1; piece < 40; piece++) {
		h2_scene_open(&x, LIMITS, piece);
		requests_and_answers(&x);
		h2_scene_close(&x);
	}
}

static void http1_is_still_spoken(void **state)
{
	struct h2_scene x;
	struct ear plain;
	struct err err;
	int fd[2];

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	unix_pair(fd);
	service_add(&x.sv, test_stream(x.l, fd[1]));
	ear_init(&plain, test_stream(x.l, fd[0]));
	stream_read(plain.s, true);
	/* a method that begins like the preface */
	assert_int_equal(stream_write(plain.s, BYTES_LIT("PR"), &err), 0);
	assert_int_equal(
		stream_write(plain.s, BYTES_LIT("OPFIND /hello HTTP/1.1\r\nhost: x\r\n\r\n"), &err),
		0);
	H2_UNTIL(&x,
		 plain.got.len > 5 && memcmp(plain.got.ptr + plain.got.len - 5, "hello", 5) == 0);
	assert_int_equal(x.sv.http.counts[HTTP_1_1].connections, 1);
	ear_done(&plain);
	h2_scene_close(&x);
}

static void a_wrong_preface_is_told_so(void **state)
{
	struct h2_scene x;
	struct ear plain;
	struct err err;
	int fd[2];

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	unix_pair(fd);
	service_add(&x.sv, test_stream(x.l, fd[1]));
	ear_init(&plain, test_stream(x.l, fd[0]));
	stream_read(plain.s, true);
	assert_int_equal(stream_write(plain.s, BYTES_LIT("PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), &err),
			 0);
	H2_UNTIL(&x, plain.ends + plain.fails > 0);
	assert_true(plain.got.len >= 17);
	assert_int_equal(plain.got.ptr[plain.got.len - 17 + 3], NGHTTP2_GOAWAY);
	ear_done(&plain);
	h2_scene_close(&x);
}

static void a_large_answer_is_whole(void **state)
{
	struct h2_scene x;
	struct h2_seen *big;

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	big = h2_get(&x.c, "/big");
	H2_UNTIL(&x, big->closed);
	assert_true(big->ended);
	assert_int_equal(big->body.len, BIG_SIZE);
	assert_true(x.sv.most_queued <= 2 * STREAM_LOW_WATER);
	h2_scene_close(&x);
}

static void a_large_body_is_whole(void **state)
{
	struct h2_scene x;
	struct h2_seen *post, *echo;

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	x.sv.echo_slowly = true;
	post = h2_ask(&x.c, "POST", "/length", many(1024 * 1024), false);
	echo = h2_ask(&x.c, "POST", "/echo", many(1024 * 1024), false);
	H2_UNTIL(&x, post->closed && echo->closed);
	assert_true(h2_heard(post, "1048576"));
	assert_int_equal(echo->body.len, 1024 * 1024);
	h2_scene_close(&x);
}

/* A stream whose window is held at zero costs what fits into its queue, and others go on. */
static void a_stalled_answer_holds_up_nobody(void **state)
{
	struct http_limits lim = HTTP_LIMITS;
	struct h2_scene x;
	struct h2_seen *big, *hello;

	(void)state;
	lim.write_stall_ms = 300;
	h2_scene_open(&x, &lim, 0);
	h2_greet(&x.c, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
	big = h2_get(&x.c, "/big");
	H2_UNTIL(&x, big->status[0] != '\0');
	h2_greet(&x.c, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
	hello = h2_ask(&x.c, "HEAD", "/hello", (struct bytes){ 0 }, false);
	H2_UNTIL(&x, hello->closed);
	assert_true(x.sv.http.h2.out_held <= STREAM_LOW_WATER + 16 * 1024);
	assert_int_equal(x.sv.gone, 0);
	H2_UNTIL(&x, big->closed);
	assert_int_equal(x.sv.gone, 1);
	assert_int_equal(x.sv.why.code, ERR_TIMEOUT);
	assert_false(big->ended);
	h2_scene_close(&x);
}

/* Ninety uploads that nobody reads fill their own windows, and the next one is not held up. */
static void paused_bodies_hold_up_nobody(void **state)
{
	enum { PAUSED = 90 };
	struct h2_scene x;
	struct h2_seen *post;

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	for (int i = 0; i < PAUSED; i++)
		(void)h2_ask(&x.c, "POST", "/hold", many(200 * 1024), false);
	H2_UNTIL(&x, x.sv.http.h2.held == (size_t)PAUSED * H2_WINDOW);
	post = h2_ask(&x.c, "POST", "/length", many(300 * 1024), false);
	H2_UNTIL(&x, post->closed);
	assert_true(h2_heard(post, "307200"));
	assert_int_equal(x.sv.http.h2.held, (size_t)PAUSED * H2_WINDOW);
	h2_scene_close(&x);
}

/* What was kept for a handler comes in pieces that whoever passes them on has room for. */
static void what_was_kept_comes_in_pieces(void **state)
{
	struct h2_scene x;
	struct h2_seen *post, *held;
	struct job *j;

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	held = h2_ask(&x.c, "POST", "/hold", many(1000 * 1000), false);
	H2_UNTIL(&x, x.sv.http.h2.held == H2_WINDOW);
	j = x.sv.jobs;
	j->kind = 'l';
	http_body_start(j->rq, BODY_MAX);
	H2_UNTIL(&x, j->seen > 300 * 1000); /* its window is wide by now */
	http_body_pause(j->rq, true);
	H2_UNTIL(&x, x.sv.http.h2.held > LOOP_READ_MAX * 2);
	post = h2_ask(&x.c, "POST", "/length", many(1000 * 1000), false);
	H2_UNTIL(&x, post->closed);
	http_body_pause(j->rq, false);
	H2_UNTIL(&x, held->closed);
	assert_true(h2_heard(held, "1000000"));
	assert_true(x.sv.largest <= LOOP_READ_MAX);
	h2_scene_close(&x);
}

static void a_reset_reaches_the_handler(void **state)
{
	struct h2_scene x;
	struct h2_seen *hold;

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	hold = h2_get(&x.c, "/hold");
	H2_UNTIL(&x, x.sv.jobs);
	assert_int_equal(nghttp2_submit_rst_stream(x.c.session, 0, hold->id, NGHTTP2_CANCEL), 0);
	h2_push(&x.c);
	H2_UNTIL(&x, x.sv.gone == 1);
	assert_null(x.sv.jobs);
	h2_scene_close(&x);
}

static void what_breaks_off_is_not_taken_for_whole(void **state)
{
	struct h2_scene x;
	struct h2_seen *less, *half;

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	less = h2_get(&x.c, "/short");
	half = h2_get(&x.c, "/half");
	H2_UNTIL(&x, less->closed && half->closed);
	assert_false(less->ended);
	assert_false(half->ended);
	assert_int_equal(less->code, NGHTTP2_INTERNAL_ERROR);
	assert_int_equal(half->code, NGHTTP2_INTERNAL_ERROR);
	h2_scene_close(&x);
}

static void a_body_that_stops_is_given_up(void **state)
{
	struct http_limits lim = HTTP_LIMITS;
	struct h2_scene x;
	struct h2_seen *post;

	(void)state;
	lim.body_stall_ms = 100;
	h2_scene_open(&x, &lim, 0);
	post = h2_ask(&x.c, "POST", "/length", BYTES_LIT("begun"), true);
	H2_UNTIL(&x, post->ended);
	assert_string_equal(post->status, "408");
	assert_int_equal(x.sv.gone, 1);
	assert_int_equal(x.sv.why.code, ERR_TIMEOUT);
	h2_scene_close(&x);
}

static void an_unread_body_is_thrown_away_up_to_a_point(void **state)
{
	struct http_limits lim = HTTP_LIMITS;
	struct h2_scene x;
	struct h2_seen *small, *large;

	(void)state;
	lim.drain_max = 100 * 1024;
	h2_scene_open(&x, &lim, 0);
	small = h2_ask(&x.c, "POST", "/early", many(90 * 1024), false);
	H2_UNTIL(&x, small->closed);
	assert_int_equal(small->code, NGHTTP2_NO_ERROR);
	assert_int_equal(small->says.len, 0);
	large = h2_ask(&x.c, "POST", "/early", many(900 * 1024), false);
	H2_UNTIL(&x, large->closed);
	assert_true(h2_heard(large, "hello"));
	assert_int_equal(large->code, NGHTTP2_NO_ERROR);
	assert_true(large->says.len > 0);
	h2_scene_close(&x);
}

static void times_of_a_connection(void **state)
{
	struct http_limits lim = HTTP_LIMITS;
	struct h2_scene x;

	(void)state;
	lim.idle_ms = 100;
	lim.head_ms = 100;
	h2_scene_open(&x, &lim, 0); /* idle after it has greeted */
	H2_UNTIL(&x, x.c.gone);
	assert_true(x.c.goaway);
	assert_int_equal(x.c.goaway_code, NGHTTP2_NO_ERROR);
	h2_scene_close(&x);

	h2_scene_open(&x, &lim, 0); /* begins a head, and stops */
	h2_say_frame(&x.c, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, BYTES_LIT("\x82"));
	lim.idle_ms = 0;
	H2_UNTIL(&x, x.c.gone);
	h2_scene_close(&x);
}

static void a_drain_lets_requests_end(void **state)
{
	struct h2_scene x;
	struct h2_seen *hold, *late;

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	hold = h2_get(&x.c, "/hold");
	H2_UNTIL(&x, x.sv.jobs);
	http_server_drain(&x.sv.http);
	late = h2_get(&x.c, "/hello"); /* it crosses what the server says: it still counts */
	H2_UNTIL(&x, x.c.goaways == 1);
	assert_int_equal(x.c.goaway_last, INT32_MAX);
	H2_UNTIL(&x, late->closed);
	assert_string_equal(late->status, "200");
	H2_UNTIL(&x, x.c.goaways == 2);
	assert_int_equal(x.c.goaway_last, late->id);
	assert_false(x.c.gone);
	job_answer_text(x.sv.jobs, "at last");
	H2_UNTIL(&x, x.c.gone);
	assert_true(hold->ended && h2_heard(hold, "at last"));
	h2_scene_close(&x);
}

static void a_websocket_is_a_stream(void **state)
{
	struct h2_scene x;
	struct h2_seen *ws;
	struct err err;
	const nghttp2_nv nv[] = { H2_NV(":method", "CONNECT"), H2_NV(":protocol", "websocket"),
				  H2_NV(":scheme", "http"), H2_NV(":authority", "x"),
				  H2_NV(":path", "/switch") };

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	H2_UNTIL(&x, x.c.connect_protocol == 1);
	ws = h2_ask_with(&x.c, nv, COUNT(nv), BYTES_LIT("early"), true);
	H2_UNTIL(&x, x.sv.taken.s && x.sv.taken.got.len == 5 && ws->status[0] != '\0');
	assert_string_equal(ws->status, "200");
	assert_int_equal(stream_write(x.sv.taken.s, BYTES_LIT("back"), &err), 0);
	H2_UNTIL(&x, h2_heard(ws, "back"));
	stream_shut(x.sv.taken.s);
	H2_UNTIL(&x, ws->ended);
	h2_more(&x.c, ws, BYTES_LIT(" and last"), true);
	H2_UNTIL(&x, x.sv.taken.ends);
	assert_true(ear_heard(&x.sv.taken, "early and last"));
	assert_int_equal(x.sv.http.counts[HTTP_2].requests, 1);
	h2_scene_close(&x);
}

static void a_websocket_outlives_its_connection(void **state)
{
	struct h2_scene x;
	const nghttp2_nv nv[] = { H2_NV(":method", "CONNECT"), H2_NV(":protocol", "websocket"),
				  H2_NV(":scheme", "http"), H2_NV(":authority", "x"),
				  H2_NV(":path", "/switch") };

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	(void)h2_ask_with(&x.c, nv, COUNT(nv), (struct bytes){ 0 }, true);
	H2_UNTIL(&x, x.sv.taken.s);
	h2c_gone(&x.c);
	H2_UNTIL(&x, x.sv.taken.fails);
	h2_scene_close(&x);
}

/* To one who asked for a tunnel, 200 would mean that there is one. */
static void no_tunnel_no_success(void **state)
{
	struct h2_scene x;
	struct h2_seen *ws, *other;
	const nghttp2_nv nv[] = { H2_NV(":method", "CONNECT"), H2_NV(":protocol", "websocket"),
				  H2_NV(":scheme", "http"), H2_NV(":authority", "x"),
				  H2_NV(":path", "/hello") };
	const nghttp2_nv other_nv[] = { H2_NV(":method", "CONNECT"), H2_NV(":protocol", "else"),
					H2_NV(":scheme", "http"), H2_NV(":authority", "x"),
					H2_NV(":path", "/switch") };

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	ws = h2_ask_with(&x.c, nv, COUNT(nv), (struct bytes){ 0 }, true);
	other = h2_ask_with(&x.c, other_nv, COUNT(other_nv), (struct bytes){ 0 }, true);
	H2_UNTIL(&x, ws->ended && other->ended);
	assert_string_equal(ws->status, "500");
	assert_string_equal(other->status, "501");
	h2_scene_close(&x);
}

static void a_server_that_goes_tells_everybody(void **state)
{
	struct h2_scene x;

	(void)state;
	h2_scene_open(&x, LIMITS, 0);
	(void)h2_get(&x.c, "/hold");
	(void)h2_ask(&x.c, "POST", "/length", BYTES_LIT("begun"), true);
	(void)h2_get(&x.c, "/big");
	H2_UNTIL(&x, x.sv.requests == 3);
	h2_scene_close(&x);
	assert_int_equal(x.sv.gone, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_request),
		cmocka_unit_test(every_split),
		cmocka_unit_test(http1_is_still_spoken),
		cmocka_unit_test(a_wrong_preface_is_told_so),
		cmocka_unit_test(a_large_answer_is_whole),
		cmocka_unit_test(a_large_body_is_whole),
		cmocka_unit_test(a_stalled_answer_holds_up_nobody),
		cmocka_unit_test(paused_bodies_hold_up_nobody),
		cmocka_unit_test(what_was_kept_comes_in_pieces),
		cmocka_unit_test(a_reset_reaches_the_handler),
		cmocka_unit_test(what_breaks_off_is_not_taken_for_whole),
		cmocka_unit_test(a_body_that_stops_is_given_up),
		cmocka_unit_test(an_unread_body_is_thrown_away_up_to_a_point),
		cmocka_unit_test(times_of_a_connection),
		cmocka_unit_test(a_drain_lets_requests_end),
		cmocka_unit_test(a_websocket_is_a_stream),
		cmocka_unit_test(a_websocket_outlives_its_connection),
		cmocka_unit_test(no_tunnel_no_success),
		cmocka_unit_test(a_server_that_goes_tells_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
