/* test_node_lease.c - a sandbox lives as long as was said, whatever happens to the clocks. */
#include "tests/unit/check.h"

#include "base/clock.h"
#include "node/life/lease.h"

enum { MAX_S = 3600 };

static const struct lease_now t0 = { 1000 * NSEC_PER_SEC, 1700000000 * NSEC_PER_SEC };

static struct lease_now later(struct lease_now now, uint64_t s)
{
	now.boot_ns += s * NSEC_PER_SEC;
	now.wall_ns += s * NSEC_PER_SEC;
	return now;
}

static uint64_t left_s(const struct lease *l, struct lease_now now)
{
	return lease_left_ns(l, now) / NSEC_PER_SEC;
}

static void the_longest_is_told_in_hours(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(lease_check(86400, 86400, &err), 0);
	assert_int_equal(lease_check(86401, 86400, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.msg, "Timeout cannot be greater than 24 hours");
	assert_int_equal(lease_check(101, 100, &err), -1);
	assert_string_equal(err.msg, "Timeout cannot be greater than 100 seconds");
}

static void it_is_moved_but_not_beyond_its_run(void **state)
{
	struct lease l;

	(void)state;
	lease_begin(&l, t0, 300);
	assert_int_equal(left_s(&l, t0), 300);
	assert_true(lease_move(&l, later(t0, 100), 50, MAX_S, true));
	assert_int_equal(left_s(&l, later(t0, 100)), 50);
	assert_false(lease_move(&l, later(t0, 110), 10, MAX_S, false));
	assert_int_equal(left_s(&l, later(t0, 110)), 40);
	assert_true(lease_move(&l, later(t0, 110), 600, MAX_S, false));
	assert_int_equal(left_s(&l, later(t0, 110)), 600);
	assert_true(lease_move(&l, later(t0, 200), MAX_S, MAX_S, true)); /* capped */
	assert_int_equal(left_s(&l, later(t0, 200)), MAX_S - 200);
	assert_false(lease_move(&l, later(t0, 210), MAX_S, MAX_S, false));
	assert_true(lease_move(&l, later(t0, 300), 0, MAX_S, true));
	assert_int_equal(left_s(&l, later(t0, 300)), 0);
	lease_begin(&l, later(t0, 5000), 300); /* resumed: a run of its own */
	assert_true(lease_move(&l, later(t0, 5000), MAX_S, MAX_S, true));
	assert_int_equal(left_s(&l, later(t0, 5000)), MAX_S);
}

static void the_wall_clock_may_jump(void **state)
{
	static const struct {
		const char *name;
		int64_t jump_s;
	} rows[] = { { "a year on", 31536000 }, { "a year back", -31536000 }, { "no", 0 } };

	(void)state;
	FOR_ROWS(row, rows) {
		struct lease_now now = later(t0, 100);
		struct journal_row saved = { .sandbox.end_ns = t0.wall_ns + 300 * NSEC_PER_SEC };
		struct lease l, loaded;

		lease_begin(&l, t0, 300);
		now.wall_ns += (uint64_t)row->jump_s * NSEC_PER_SEC;
		assert_int_equal(left_s(&l, now), 200);
		assert_int_equal(lease_end_wall(&l, now), now.wall_ns + 200 * NSEC_PER_SEC);
		if (row->jump_s == 0) /* reading two clocks takes time, and is not shown */
			assert_int_equal(lease_end_shown(&l, now, saved.sandbox.end_ns - 1000),
					 saved.sandbox.end_ns - 1000);
		else
			assert_int_equal(lease_end_shown(&l, now, saved.sandbox.end_ns),
					 now.wall_ns + 200 * NSEC_PER_SEC);
		saved.run_boot_ns = l.run_ns; /* while node was away */
		saved.end_boot_ns = l.end_ns;
		lease_load(&loaded, now, &saved);
		assert_memory_equal(&loaded, &l, sizeof(l));
		now = later(now, 1000);
		assert_int_equal(left_s(&l, now), 0);
		assert_int_equal(lease_end_wall(&l, now), now.wall_ns - 800 * NSEC_PER_SEC);
	}
}

static void a_row_without_it_has_its_wall_times(void **state)
{
	struct journal_row row = { .sandbox = { .started_ns = t0.wall_ns - 500 * NSEC_PER_SEC,
						.end_ns = t0.wall_ns + 300 * NSEC_PER_SEC } };
	struct lease l;

	(void)state;
	lease_load(&l, t0, &row);
	assert_int_equal(left_s(&l, t0), 300);
	assert_true(lease_move(&l, t0, MAX_S, MAX_S, true));
	assert_int_equal(left_s(&l, t0), MAX_S - 500);
	row.run_boot_ns = t0.boot_ns + 1; /* of another boot */
	row.end_boot_ns = UINT64_MAX / 2;
	lease_load(&l, t0, &row);
	assert_int_equal(left_s(&l, t0), 300);
	row.sandbox.started_ns = 1; /* longer ago than this boot */
	row.sandbox.end_ns = 2;
	lease_load(&l, t0, &row);
	assert_int_equal(left_s(&l, t0), 0);
	assert_int_equal(l.run_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_longest_is_told_in_hours),
		cmocka_unit_test(it_is_moved_but_not_beyond_its_run),
		cmocka_unit_test(the_wall_clock_may_jump),
		cmocka_unit_test(a_row_without_it_has_its_wall_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
