/* test_gateway_stream.c - long streams through the gateway: slow ones, switched ones, silent ones.
 */
#include "tests/unit/gateway_world.h"

/* What waits in the gateway for a slow reader: see relay_stream.c. */
enum { HELD_MAX = STREAM_LOW_WATER + HTTP_INPUT_MAX + 64, UPLOAD = 24 * 1024 * 1024 };

static void stop_patience(struct timer *t)
{
	(void)t;
}

/* Turn until `n` bytes have not changed for a while. */
static void run_until_still(struct world *w, const size_t *n)
{
	struct timer quiet;
	size_t before;

	timer_init(&quiet, w->l, stop_patience);
	do {
		before = *n;
		timer_start(&quiet, 300);
		while (quiet.active)
			(void)loop_turn(w->l);
	} while (*n != before);
}

static void a_client_that_does_not_read_costs_nothing(void **state)
{
	struct relay *r;
	struct world w;
	size_t most = 0;

	(void)state;
	world_open(&w);
	ask(&w, "GET", "/big", "");
	w.client.stop_after = 1;
	RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 200"));
	run_until_still(&w, &w.sv.most_queued);
	r = world_relay(&w);
	assert_non_null(r);
	most = http_queued(r->rq);
	assert_true(most > 0 && most <= HELD_MAX);
	assert_true(w.sv.jobs->left > 0); /* so the guest was stopped, too */
	w.client.stop_after = 0;
	stream_read(w.client.s, true);
	while (w.client.got.len < BIG_SIZE) {
		assert_true(loop_turn(w.l));
		r = world_relay(&w);
		if (r && http_queued(r->rq) > most)
			most = http_queued(r->rq);
	}
	RUN_UNTIL(w.l, !world_relay(&w));
	assert_true(most <= HELD_MAX);
	world_close(&w);
}

static void a_guest_that_does_not_read_costs_nothing(void **state)
{
	struct err err = { 0 };
	struct relay *r;
	struct world w;
	char text[64];
	size_t sent = 0;

	(void)state;
	world_open(&w);
	(void)snprintf(text, sizeof(text), "content-length: %d\r\n", UPLOAD);
	ask(&w, "POST", "/hold", text);
	RUN_UNTIL(w.l, w.sv.jobs);
	while (sent < UPLOAD) {
		static const uint8_t block[16 * 1024];
		size_t before = sent;

		while (stream_room(w.client.s) >= sizeof(block) && sent < UPLOAD) {
			assert_int_equal(stream_write(w.client.s,
						      (struct bytes){ block, sizeof(block) }, &err),
					 0);
			sent += sizeof(block);
		}
		run_until_still(&w, &before);
		r = world_relay(&w);
		assert_non_null(r);
		assert_true(http_ask_queued(r->x) <= HELD_MAX);
		if (sent == before)
			break;
	}
	assert_true(sent < UPLOAD); /* the client was stopped */
	job_answer_text(w.sv.jobs, "enough");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nenough"));
	world_close(&w);
}

static void much_passes_both_ways_at_once(void **state)
{
	enum { SIZE = 4 * 1024 * 1024 };
	struct err err = { 0 };
	struct world w;
	char text[64];
	size_t sent = 0;

	(void)state;
	world_open(&w);
	w.sv.echo_slowly = true;
	(void)snprintf(text, sizeof(text), "content-length: %d\r\n", SIZE);
	ask(&w, "POST", "/echo", text);
	while (!heard(&w.client, "\r\n0\r\n\r\n")) {
		while (sent < SIZE && stream_room(w.client.s) >= 4096) {
			uint8_t block[4096];

			memset(block, 'a' + (int)(sent / 4096 % 26), sizeof(block));
			assert_int_equal(stream_write(w.client.s,
						      (struct bytes){ block, sizeof(block) }, &err),
					 0);
			sent += sizeof(block);
		}
		assert_true(loop_turn(w.l));
		assert_int_equal(w.client.fails, 0);
	}
	assert_true(w.client.got.len > SIZE);
	world_close(&w);
}

static void websockets_pass(void **state)
{
	struct err err = { 0 };
	struct world w;

	(void)state;
	world_open(&w);
	ask(&w, "GET", "/switch",
	    "connection: keep-alive, Upgrade\r\nupgrade: websocket\r\n"
	    "sec-websocket-key: x\r\n");
	say(&w, "early");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n"));
	assert_true(heard(&w.client, "HTTP/1.1 101 "));
	assert_true(heard(&w.client, "upgrade: websocket\r\n"));
	RUN_UNTIL(w.l, w.sv.early.len + w.sv.taken.got.len == 5);
	assert_int_equal(stream_write(w.sv.taken.s, BYTES_LIT("from the guest"), &err), 0);
	RUN_UNTIL(w.l, heard(&w.client, "from the guest"));
	say(&w, ", later");
	RUN_UNTIL(w.l, heard(&w.sv.taken, ", later"));
	stream_shut(w.sv.taken.s); /* one direction ends, the other goes on */
	RUN_UNTIL(w.l, w.client.ends == 1);
	say(&w, "!");
	RUN_UNTIL(w.l, heard(&w.sv.taken, ", later!"));
	stream_shut(w.client.s);
	RUN_UNTIL(w.l, w.sv.taken.ends == 1 && !world_relay(&w));
	world_close(&w);
}

static void a_switched_stream_ends_with_its_sandbox(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	ask(&w, "GET", "/switch", "connection: upgrade\r\nupgrade: websocket\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n") && w.sv.taken.s);
	guest_cache_gone(w.g.guests, "abc", 1);
	RUN_UNTIL(w.l, w.client.fails == 1 && w.sv.taken.fails == 1);
	ear_done(&w.sv.taken);
	ask(&w, "GET", "/switch", "connection: upgrade\r\nupgrade: websocket\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n") && w.sv.taken.s);
	stream_abort(TAKE(w.client.s));
	RUN_UNTIL(w.l, w.sv.taken.fails == 1 && !world_relay(&w));
	ear_done(&w.sv.taken);
	/* and with the gateway */
	ask(&w, "GET", "/switch", "connection: upgrade\r\nupgrade: websocket\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n") && w.sv.taken.s);
	world_close(&w);
}

static void a_refused_switch_is_an_answer(void **state)
{
	struct world w;

	(void)state;
	world_open(&w);
	ask(&w, "GET", "/hello", "connection: upgrade\r\nupgrade: websocket\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\nhello"));
	/* another version of HTTP is not asked for, nor is one with a body */
	ask(&w, "GET", "/switch", "connection: upgrade\r\nupgrade: h2c\r\n");
	RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 400 "));
	ask(&w, "POST", "/switch",
	    "connection: upgrade\r\nupgrade: websocket\r\ncontent-length: 1\r\n");
	say(&w, "x");
	RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 400 "));
	world_close(&w);
}

/* The limits of the server are short here, and a stream that rests is not ended by them. */
static void a_stream_may_be_silent(void **state)
{
	size_t still = 0;
	struct world w;

	(void)state;
	world_open(&w);
	w.http.limits = (struct http_limits){ .head_ms = 50,
					      .idle_ms = 50,
					      .body_stall_ms = 50,
					      .write_stall_ms = 50,
					      .drain_max = HTTP_DRAIN_MAX };
	ask(&w, "POST", "/length", "content-length: 2\r\n");
	say(&w, "1");
	run_until_still(&w, &still);
	say(&w, "2");
	RUN_UNTIL(w.l, heard(&w.client, "\r\n\r\n2"));
	ask(&w, "GET", "/big", "");
	w.client.stop_after = 1;
	RUN_UNTIL(w.l, heard(&w.client, "HTTP/1.1 200"));
	run_until_still(&w, &w.sv.most_queued);
	run_until_still(&w, &still);
	stream_read(w.client.s, true);
	w.client.stop_after = 0;
	RUN_UNTIL(w.l, w.client.got.len > BIG_SIZE);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_that_does_not_read_costs_nothing),
		cmocka_unit_test(a_guest_that_does_not_read_costs_nothing),
		cmocka_unit_test(much_passes_both_ways_at_once),
		cmocka_unit_test(websockets_pass),
		cmocka_unit_test(a_switched_stream_ends_with_its_sandbox),
		cmocka_unit_test(a_refused_switch_is_an_answer),
		cmocka_unit_test(a_stream_may_be_silent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
