/* test_net_pump.c - relaying: everything arrives, in bounded memory, and ends are passed on. */
#include "tests/unit/test_net_layers.h"

#include "base/random.h"
#include "net/pump.h"

struct relay { /* a --- left/right --- b, with the pump between left and right */
	struct loop *l;
	struct ear a, b;
	struct pump pump;
	int dones;
	bool broke;
	struct err why;
};

static void on_done(struct pump *p, const struct err *err)
{
	struct relay *r = CONTAINER_OF(p, struct relay, pump);

	r->dones++;
	r->broke = err != NULL;
	if (err)
		r->why = *err;
}

static void relay_open(struct relay *r, void (*make_pair)(int fd[2]), uint64_t idle_ms)
{
	static const struct pump_ops ops = { on_done };
	int x[2], y[2];

	*r = (struct relay){ .l = test_loop() };
	make_pair(x);
	make_pair(y);
	ear_init(&r->a, test_stream(r->l, x[0]));
	ear_init(&r->b, test_stream(r->l, y[1]));
	pump_start(&r->pump, &ops, test_stream(r->l, x[1]), test_stream(r->l, y[0]), idle_ms);
	stream_read(r->a.s, true);
	stream_read(r->b.s, true);
}

static void relay_close(struct relay *r)
{
	pump_abort(&r->pump);
	ear_done(&r->a);
	ear_done(&r->b);
	loop_free(r->l);
}

struct source { /* writes a long text into a stream as fast as that takes it */
	struct bytes left;
	struct stream *s;
	bool shut;
};

static void source_push(struct source *from)
{
	struct err err;

	while (from->left.len > 0 && stream_queued(from->s) <= STREAM_LOW_WATER) {
		struct bytes next = bytes_head(from->left, 30011);

		assert_int_equal(stream_write(from->s, next, &err), 0);
		from->left = bytes_tail(from->left, next.len);
	}
	if (from->left.len == 0 && !from->shut) {
		from->shut = true;
		stream_shut(from->s);
	}
}

static size_t pump_holds(struct relay *r)
{
	size_t a = r->pump.a.s ? stream_queued(r->pump.a.s) : 0;
	size_t b = r->pump.b.s ? stream_queued(r->pump.b.s) : 0;

	return a > b ? a : b;
}

static void on_nothing(struct timer *t)
{
	(void)t;
}

static void ten_mebibytes_both_ways_past_a_stalled_reader(void **state)
{
	enum { N = 10 * 1024 * 1024 };
	static const struct {
		const char *name;
		void (*make_pair)(int fd[2]);
	} rows[] = { { "tcp", tcp_pair }, { "unix", unix_pair } };

	(void)state;
	FOR_ROWS(row, rows) {
		uint8_t *text = malloc(N), *back = malloc(N);
		struct relay r;
		struct source up, down;
		size_t stalled, most = 0;

		assert_true(text && back);
		for (size_t i = 0; i < N; i += 64 * 1024) {
			random_fill(text + i, 64 * 1024);
			random_fill(back + i, 64 * 1024);
		}
		relay_open(&r, row->make_pair, 0);
		up = (struct source){ { text, N }, r.a.s, false };
		down = (struct source){ { back, N }, r.b.s, false };
		r.b.stop_after = 100000; /* b stalls; the way back must go on all the same */
		while (r.a.got.len < N) {
			source_push(&up);
			source_push(&down);
			assert_true(loop_turn(r.l));
			most = pump_holds(&r) > most ? pump_holds(&r) : most;
		}
		stalled = r.b.got.len;
		assert_true(stalled < N / 2);
		assert_true(up.left.len > 0); /* the pressure reached the sender */
		r.b.stop_after = 0;
		stream_read(r.b.s, true);
		while (r.dones == 0) {
			source_push(&up);
			assert_true(loop_turn(r.l));
			most = pump_holds(&r) > most ? pump_holds(&r) : most;
		}
		assert_false(r.broke);
		RUN_UNTIL(r.l, r.a.ends == 1 && r.b.ends == 1);
		assert_true(bytes_eq(buf_view(&r.b.got), (struct bytes){ text, N }));
		assert_true(bytes_eq(buf_view(&r.a.got), (struct bytes){ back, N }));
		assert_true(most > 0 && most <= PUMP_HOLD);
		assert_int_equal(r.pump.a.moved, N);
		assert_int_equal(r.pump.b.moved, N);
		relay_close(&r);
		free(text);
		free(back);
	}
}

static void an_end_is_passed_on_and_the_way_back_stays_open(void **state)
{
	struct relay r;
	struct err err;

	(void)state;
	relay_open(&r, tcp_pair, 0);
	assert_int_equal(stream_write(r.a.s, BYTES_LIT("question"), &err), 0);
	stream_shut(r.a.s);
	RUN_UNTIL(r.l, r.b.ends == 1);
	assert_true(ear_heard(&r.b, "question"));
	assert_int_equal(r.dones, 0);
	assert_int_equal(stream_write(r.b.s, BYTES_LIT("answer"), &err), 0);
	stream_shut(r.b.s);
	RUN_UNTIL(r.l, r.a.ends == 1 && r.dones == 1);
	assert_true(ear_heard(&r.a, "answer"));
	assert_false(r.broke);
	relay_close(&r);
}

static void a_reset_is_passed_on_as_a_reset(void **state)
{
	struct relay r;

	(void)state;
	relay_open(&r, tcp_pair, 0);
	stream_abort(r.a.s);
	r.a.s = NULL;
	RUN_UNTIL(r.l, r.dones == 1 && r.b.fails == 1);
	assert_true(r.broke);
	assert_int_equal(r.why.code, ERR_UNAVAILABLE);
	relay_close(&r);
}

/* Each says more than the other takes; then both are gone at once. */
static void two_that_do_not_listen_are_not_waited_for(void **state)
{
	static uint8_t much[8 * 1024 * 1024];
	struct source a = { .left = { much, sizeof(much) } }, b = a;
	struct relay r;

	(void)state;
	relay_open(&r, tcp_pair, 0);
	a.s = r.a.s;
	b.s = r.b.s;
	stream_read(r.a.s, false);
	stream_read(r.b.s, false);
	for (uint64_t last = 1; last > 0;) {
		struct timer patience;
		uint64_t before = r.pump.a.moved + r.pump.b.moved;

		timer_init(&patience, r.l, patience_over);
		timer_start(&patience, 200);
		while (patience.active) {
			source_push(&a);
			source_push(&b);
			assert_true(loop_turn(r.l));
		}
		last = r.pump.a.moved + r.pump.b.moved - before;
	}
	assert_true(a.left.len > 0 && b.left.len > 0);
	stream_abort(TAKE(r.a.s));
	stream_abort(TAKE(r.b.s));
	RUN_UNTIL(r.l, r.dones == 1);
	assert_true(r.broke);
	relay_close(&r);
}

static void a_relay_where_nothing_moves_times_out(void **state)
{
	struct relay r;

	(void)state;
	relay_open(&r, tcp_pair, 20);
	RUN_UNTIL(r.l, r.dones == 1);
	assert_int_equal(r.why.code, ERR_TIMEOUT);
	relay_close(&r);
}

static void turn(struct relay *r)
{
	for (int i = 0; i < 20; i++) {
		struct timer t;

		timer_init(&t, r->l, on_nothing);
		timer_start(&t, 0);
		(void)loop_turn(r->l);
		timer_stop(&t);
	}
}

static void nothing_moves_while_it_is_held(void **state)
{
	struct relay r;
	struct err err;

	(void)state;
	relay_open(&r, tcp_pair, 0);
	pump_hold(&r.pump, true);
	assert_int_equal(stream_write(r.a.s, BYTES_LIT("question"), &err), 0);
	assert_int_equal(stream_write(r.b.s, BYTES_LIT("greeting"), &err), 0);
	stream_shut(r.b.s);
	turn(&r);
	assert_int_equal(r.a.got.len + r.b.got.len, 0);
	pump_hold(&r.pump, false);
	RUN_UNTIL(r.l, r.a.ends == 1 && r.b.got.len == 8);
	assert_true(ear_heard(&r.a, "greeting"));
	assert_true(ear_heard(&r.b, "question"));
	relay_close(&r);
}

static void a_side_waits_for_the_other_or_for_its_end(void **state)
{
	struct relay r;
	struct err err;

	(void)state;
	relay_open(&r, tcp_pair, 0);
	pump_wait(&r.pump.a, true);
	assert_int_equal(stream_write(r.a.s, BYTES_LIT("question"), &err), 0);
	stream_shut(r.a.s);
	assert_int_equal(stream_write(r.b.s, BYTES_LIT("greeting"), &err), 0);
	RUN_UNTIL(r.l, ear_heard(&r.a, "greeting"));
	turn(&r);
	assert_int_equal(r.b.got.len + r.b.ends, 0);
	pump_hold(&r.pump, true); /* one does not undo the other */
	pump_hold(&r.pump, false);
	turn(&r);
	assert_int_equal(r.b.got.len + r.b.ends, 0);
	stream_shut(r.b.s);
	RUN_UNTIL(r.l, r.dones == 1 && r.b.ends == 1);
	assert_true(ear_heard(&r.b, "question"));
	assert_false(r.broke);
	relay_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_mebibytes_both_ways_past_a_stalled_reader),
		cmocka_unit_test(an_end_is_passed_on_and_the_way_back_stays_open),
		cmocka_unit_test(a_reset_is_passed_on_as_a_reset),
		cmocka_unit_test(two_that_do_not_listen_are_not_waited_for),
		cmocka_unit_test(a_relay_where_nothing_moves_times_out),
		cmocka_unit_test(nothing_moves_while_it_is_held),
		cmocka_unit_test(a_side_waits_for_the_other_or_for_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
