/* test_http2_bounds.c - HTTP/2: clients that ask for much with few bytes are sent away. */
#include "tests/unit/h2_client.h"

#include "http/h2_session.h"

enum { FLOOD = 40 * 1000 };

static const struct bytes none;

static void settle_in(struct h2_scene *x)
{
	struct h2_seen *hello;

	h2_scene_open(x, &HTTP_LIMITS, 0);
	hello = h2_get(&x->c, "/hello");
	H2_UNTIL(x, hello->closed);
}

/* Says the frame again and again; true: is sent away with `code` before it has said `max`. */
static bool is_sent_away(struct h2_scene *x, size_t max, uint32_t code, uint8_t type, uint8_t flags,
			 uint32_t id, struct bytes payload)
{
	for (size_t i = 0; i < max && !x->c.gone && !x->c.goaway; i++) {
		h2_say_frame(&x->c, type, flags, id, payload);
		if (i % 100 == 99)
			(void)loop_turn(x->l);
	}
	H2_UNTIL(x, x->c.goaway || x->c.gone);
	return x->c.goaway && x->c.goaway_code == code;
}

struct flood {
	const char *name;
	uint8_t type, flags;
	uint32_t id;
	struct bytes payload;
};

static void floods_of_nothing(void **state)
{
	const struct flood floods[] = {
		{ "ping", NGHTTP2_PING, 0, 0, BYTES_LIT("12345678") },
		{ "ping ack", NGHTTP2_PING, 1, 0, BYTES_LIT("12345678") },
		{ "settings", NGHTTP2_SETTINGS, 0, 0, none },
		{ "priority", NGHTTP2_PRIORITY, 0, 1001, BYTES_LIT("\0\0\0\0\0") },
		{ "window update", NGHTTP2_WINDOW_UPDATE, 0, 0, BYTES_LIT("\0\0\0\1") },
		{ "unknown", 99, 0, 0, BYTES_LIT("x") },
		{ "empty data", NGHTTP2_DATA, 0, 3, none },
		{ "padding", NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 3, BYTES_LIT("\1\0") },
	};

	(void)state;
	FOR_ROWS(f, floods) {
		struct h2_scene x;

		settle_in(&x);
		(void)h2_ask(&x.c, "POST", "/length", BYTES_LIT("a"), true); /* stream 3 */
		H2_UNTIL(&x, x.sv.requests == 2);
		if (!is_sent_away(&x, FLOOD, NGHTTP2_ENHANCE_YOUR_CALM, f->type, f->flags, f->id,
				  f->payload))
			fail_msg("%s: %d %u", f->name, x.c.goaway, x.c.goaway_code);
		H2_UNTIL(&x, x.sv.gone == 1);
		h2_scene_close(&x);
	}
}

/* What a busy client says of this kind is paid for by what it does. */
static void a_busy_client_is_calm(void **state)
{
	struct h2_scene x;
	struct h2_seen *at;

	(void)state;
	settle_in(&x);
	for (int i = 0; i < 300; i++) {
		for (int j = 0; j < 4; j++)
			h2_say_frame(&x.c, NGHTTP2_PING, 0, 0, BYTES_LIT("12345678"));
		at = h2_get(&x.c, "/hello");
		H2_UNTIL(&x, at->closed);
	}
	assert_false(x.c.goaway);
	assert_true(x.c.pings >= 1100);
	h2_scene_close(&x);
}

static void rapid_resets(void **state)
{
	struct h2_scene x;
	uint32_t id;

	(void)state;
	settle_in(&x);
	x.c.raw = true;
	for (id = 3; id < 2 * FLOOD && !x.c.gone; id += 2) {
		/* GET / of host "x" by indices and one literal */
		h2_say_frame(&x.c, NGHTTP2_HEADERS, 5, id, BYTES_LIT("\x82\x86\x84\x01\x01x"));
		h2_say_frame(&x.c, NGHTTP2_RST_STREAM, 0, id, BYTES_LIT("\0\0\0\x08"));
		if (id % 64 == 1)
			(void)loop_turn(x.l);
	}
	H2_UNTIL(&x, x.c.gone);
	assert_true(x.c.goaway);
	assert_true(x.sv.requests < 2000);
	assert_null(x.sv.jobs);
	h2_scene_close(&x);
}

/* Resets that we have to send: here, heads that are malformed for nghttp2. */
static void provoked_resets(void **state)
{
	struct h2_scene x;
	uint32_t id;

	(void)state;
	settle_in(&x);
	x.c.raw = true;
	for (id = 3; id < FLOOD && !x.c.gone && !x.c.goaway; id += 2) {
		h2_say_frame(&x.c, NGHTTP2_HEADERS, 5, id, BYTES_LIT("\x82\x82\x86\x84"));
		(void)loop_turn(x.l);
	}
	H2_UNTIL(&x, x.c.gone);
	assert_int_equal(x.c.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
	assert_true(id / 2 < 3 * H2_PROVOKED_MAX);
	h2_scene_close(&x);
}

static void window_overflow_resets(void **state)
{
	struct h2_scene x;

	(void)state;
	settle_in(&x);
	for (int i = 0; i < 300 && !x.c.goaway; i++) {
		struct h2_seen *at = h2_get(&x.c, "/hold");

		h2_say_frame(&x.c, NGHTTP2_WINDOW_UPDATE, 0, (uint32_t)at->id,
			     BYTES_LIT("\x7f\xff\xff\xff"));
		H2_UNTIL(&x, at->closed || x.c.goaway || x.c.gone);
	}
	H2_UNTIL(&x, x.c.gone);
	assert_int_equal(x.c.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
	h2_scene_close(&x);
}

static void continuations_without_end(void **state)
{
	struct h2_scene x;

	(void)state;
	settle_in(&x);
	h2_say_frame(&x.c, NGHTTP2_HEADERS, 0, 3, BYTES_LIT("\x82"));
	for (int i = 0; i < 100 && !x.c.gone; i++) {
		h2_say_frame(&x.c, NGHTTP2_CONTINUATION, 0, 3, BYTES_LIT("\x10\x01x\x01y"));
		(void)loop_turn(x.l);
	}
	H2_UNTIL(&x, x.c.gone);
	assert_true(x.c.goaway);
	h2_scene_close(&x);
}

/* One field of 4,000 bytes in the table, and then a byte for each time it is meant. */
static void a_head_that_unpacks_to_much(void **state)
{
	enum { VALUE = 3900, TIMES = 12 * 1000 };
	AUTO(buf_done) struct buf block = BUF_MAX(64 * 1024);
	const uint8_t length[] = { 0x7f, ((VALUE - 127) & 0x7f) | 0x80, (VALUE - 127) >> 7 };
	struct h2_scene x;
	struct err err;
	uint8_t *at;

	(void)state;
	settle_in(&x);
	assert_int_equal(buf_add(&block, BYTES_LIT("\x82\x86\x84\x01\x01x\x40\x01z"), &err), 0);
	assert_int_equal(buf_add(&block, (struct bytes){ length, 3 }, &err), 0);
	assert_int_equal(buf_reserve(&block, VALUE + TIMES, &at, &err), 0);
	memset(at, 'v', VALUE);
	memset(at + VALUE, 0xbe, TIMES); /* index 62: the newest of the table */
	buf_claim(&block, VALUE + TIMES);
	h2_say_frame(&x.c, NGHTTP2_HEADERS, 5, 3, buf_view(&block));
	H2_UNTIL(&x, x.c.gone); /* the rest of it is not even unpacked */
	assert_int_equal(x.c.goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
	assert_int_equal(x.sv.requests, 1);
	h2_scene_close(&x);
}

/* A head over the limit is answered, as with HTTP/1.1. */
static void a_head_too_large_is_answered(void **state)
{
	static char value[H2_LIST_MAX / 3];
	struct h2_scene x;
	struct h2_seen *at;
	nghttp2_nv nv[] = { H2_NV(":method", "GET"),  H2_NV(":scheme", "http"),
			    H2_NV(":authority", "x"), H2_NV(":path", "/hello"),
			    H2_NV("a", "b"),          H2_NV("c", "d"),
			    H2_NV("e", "f") };

	(void)state;
	memset(value, 'v', sizeof(value) - 1);
	for (size_t i = 4; i < 7; i++) {
		nv[i].value = (uint8_t *)value;
		nv[i].valuelen = sizeof(value) - 1;
	}
	settle_in(&x);
	at = h2_ask_with(&x.c, nv, COUNT(nv), none, false);
	H2_UNTIL(&x, at->closed);
	assert_string_equal(at->status, "431");
	at = h2_get(&x.c, "/hello");
	H2_UNTIL(&x, at->closed);
	assert_string_equal(at->status, "200");
	h2_scene_close(&x);
}

static void streams_at_once(void **state)
{
	struct h2_scene x;
	uint32_t id;

	(void)state;
	settle_in(&x);
	x.c.raw = true;
	for (id = 3; id <= 2 * (H2_STREAMS_MAX + 50) && !x.c.gone; id += 2) /* /hold, host x */
		h2_say_frame(&x.c, NGHTTP2_HEADERS, 5, id,
			     BYTES_LIT("\x82\x86\x04\x05/hold\x01\x01x"));
	H2_UNTIL(&x, x.c.goaway || x.c.gone);
	assert_true(x.sv.requests <= H2_STREAMS_MAX + 1);
	h2_scene_close(&x);
}

/* A hundred requests at once are two for each turn of the loop: others get their turns between. */
static void a_turn_is_two_requests(void **state)
{
	struct h2_scene x;
	size_t before, most = 0;

	(void)state;
	settle_in(&x);
	for (int i = 0; i < 90; i++)
		(void)h2_get(&x.c, "/hello");
	while (x.sv.requests < 91) {
		before = x.sv.requests;
		assert_true(loop_turn(x.l));
		if (x.sv.requests - before > most)
			most = x.sv.requests - before;
	}
	assert_true(most <= 2 * HTTP_TURN_REQUESTS); /* a turn has a read and a timer */
	H2_UNTIL(&x, x.c.n_closed == 91);
	h2_scene_close(&x);
}

static void a_slow_preface_is_cut_off(void **state)
{
	struct http_limits lim = HTTP_LIMITS;
	struct service sv;
	struct ear client;
	struct loop *l = test_loop();
	struct err err;
	int fd[2];

	(void)state;
	lim.head_ms = 100;
	unix_pair(fd);
	service_open(&sv, l, &lim);
	http_server_speak_h2(&sv.http);
	service_add(&sv, test_stream(l, fd[1]));
	ear_init(&client, test_stream(l, fd[0]));
	stream_read(client.s, true);
	assert_int_equal(stream_write(client.s, BYTES_LIT("PRI * HTTP/2.0\r\n"), &err), 0);
	RUN_UNTIL(l, client.ends + client.fails > 0);
	ear_done(&client);
	service_close(&sv);
	loop_free(l);
}

/* Answers that are not taken: then streams are refused, and what is kept is bounded. */
static void answers_that_pile_up(void **state)
{
	struct h2_scene x;

	(void)state;
	h2_scene_open(&x, &HTTP_LIMITS, 0);
	h2_greet(&x.c, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0);
	x.sv.http.h2.out_held = H2_OUT_ALL_MAX; /* as if others held so much */
	for (int i = 0; i < 60; i++)
		(void)h2_get(&x.c, "/big");
	H2_UNTIL(&x, x.c.n_closed > 0);
	for (int i = 0; i < 60; i++)
		assert_true(!x.c.seen[i].closed || x.c.seen[i].code == NGHTTP2_REFUSED_STREAM);
	assert_true(x.sv.http.h2.out_held - H2_OUT_ALL_MAX <= H2_OUT_SHARE + 64 * 1024);
	x.sv.http.h2.out_held -= H2_OUT_ALL_MAX;
	h2_scene_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floods_of_nothing),
		cmocka_unit_test(a_busy_client_is_calm),
		cmocka_unit_test(rapid_resets),
		cmocka_unit_test(provoked_resets),
		cmocka_unit_test(window_overflow_resets),
		cmocka_unit_test(continuations_without_end),
		cmocka_unit_test(a_head_that_unpacks_to_much),
		cmocka_unit_test(a_head_too_large_is_answered),
		cmocka_unit_test(streams_at_once),
		cmocka_unit_test(a_turn_is_two_requests),
		cmocka_unit_test(a_slow_preface_is_cut_off),
		cmocka_unit_test(answers_that_pile_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
