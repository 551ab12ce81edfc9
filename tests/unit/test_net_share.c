/* test_net_share.c - a sandbox has its share of the way out, however many connections it opens,
 * and no more bytes in a second than it may. */
#include "tests/unit/check.h"

#include "base/clock.h"
#include "net/share.h"

enum { CROWD = 64, TURNS = 400, RATE = 1000 * 1000, PIECE = 10 * 1000 };

struct mover {
	struct share_taker taker;
	struct share *share;
	bool waits;
	uint64_t moved;
};

static void on_go(struct share_taker *t)
{
	CONTAINER_OF(t, struct mover, taker)->waits = false;
}

static struct mover mover_of(struct share *s)
{
	return (struct mover){ .taker = { on_go }, .share = s };
}

static void move(struct mover *m, size_t n)
{
	if (m->waits)
		return;
	m->moved += n;
	m->waits = !share_take(m->share, &m->taker, n);
}

static void on_tick(struct timer *t)
{
	timer_start(t, 0); /* the loop always has something to do */
}

struct world {
	struct loop *loop;
	struct timer tick;
	struct share share, other;
};

static void open_world(struct world *w, uint64_t bytes_per_s)
{
	struct err err = { 0 };

	assert_int_equal(loop_open(&w->loop, &err), 0);
	share_open(&w->share, w->loop, bytes_per_s);
	share_open(&w->other, w->loop, bytes_per_s);
	timer_init(&w->tick, w->loop, on_tick);
	timer_start(&w->tick, 0);
}

static void close_world(struct world *w)
{
	timer_stop(&w->tick);
	share_close(&w->share);
	share_close(&w->other);
	loop_free(w->loop);
}

static void one_of_many_connections_gets_no_more_than_one_of_one(void **state)
{
	struct world w;
	struct mover greedy[CROWD], modest;
	uint64_t all = 0;

	(void)state;
	open_world(&w, 0);
	modest = mover_of(&w.other);
	for (int i = 0; i < CROWD; i++)
		greedy[i] = mover_of(&w.share);
	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < CROWD; i++)
			move(&greedy[i], LOOP_READ_MAX);
		move(&modest, LOOP_READ_MAX);
		(void)loop_turn(w.loop);
	}
	for (int i = 0; i < CROWD; i++) {
		assert_true(greedy[i].moved >=
			    (uint64_t)2 * LOOP_READ_MAX); /* all had their turn */
		all += greedy[i].moved;
		share_leave(&greedy[i].taker);
	}
	assert_int_equal(modest.moved, (uint64_t)TURNS * LOOP_READ_MAX);
	assert_in_range(all, modest.moved / 2, modest.moved + (uint64_t)CROWD * LOOP_READ_MAX);
	close_world(&w);
}

/* Each is a read and a write of the one thread that serves all. */
static void many_that_move_a_byte_each_have_no_more_turns(void **state)
{
	enum { MANY = 512 };
	struct world w;
	struct mover greedy[MANY];
	uint64_t moves = 0;

	(void)state;
	open_world(&w, 0);
	for (int i = 0; i < MANY; i++)
		greedy[i] = mover_of(&w.share);
	for (int turn = 0; turn < TURNS; turn++) {
		for (int i = 0; i < MANY; i++)
			move(&greedy[i], 1);
		(void)loop_turn(w.loop);
	}
	for (int i = 0; i < MANY; i++) {
		moves += greedy[i].moved;
		share_leave(&greedy[i].taker);
	}
	assert_in_range(moves, TURNS, TURNS * SHARE_OF_TURN / SHARE_LEAST + MANY);
	close_world(&w);
}

static void a_rate_is_kept(void **state)
{
	struct world w;
	struct mover two[2];
	uint64_t begin, ms, all;

	(void)state;
	open_world(&w, RATE);
	two[0] = mover_of(&w.share);
	two[1] = mover_of(&w.share);
	begin = clock_mono_ns();
	do {
		move(&two[0], PIECE);
		move(&two[1], PIECE);
		(void)loop_turn(w.loop);
		ms = (clock_mono_ns() - begin) / NSEC_PER_MSEC;
	} while (ms < 1000);
	all = two[0].moved + two[1].moved;
	print_message("      %lu bytes in %lu ms\n", all, ms);
	assert_true(all <= RATE / 1000 * (ms + SHARE_BURST_MS + 2) + (uint64_t)2 * PIECE);
	assert_true(all > (uint64_t)RATE / 1000 * SHARE_BURST_MS);
	assert_true(two[0].moved > 0 && two[1].moved > 0);
	share_leave(&two[0].taker);
	share_leave(&two[1].taker);
	close_world(&w);
}

static void who_leaves_the_line_is_not_called(void **state)
{
	struct world w;
	struct mover all[3];

	(void)state;
	open_world(&w, RATE);
	for (int i = 0; i < 3; i++) {
		all[i] = mover_of(&w.share);
		move(&all[i], (size_t)RATE / 10);
	}
	assert_true(all[1].waits && all[2].waits);
	share_leave(&all[1].taker);
	share_leave(&all[1].taker);
	while (all[2].waits)
		(void)loop_turn(w.loop);
	assert_true(all[1].waits);
	share_leave(&all[0].taker);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_of_many_connections_gets_no_more_than_one_of_one),
		cmocka_unit_test(many_that_move_a_byte_each_have_no_more_turns),
		cmocka_unit_test(a_rate_is_kept),
		cmocka_unit_test(who_leaves_the_line_is_not_called),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
