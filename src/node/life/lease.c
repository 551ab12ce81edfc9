/* lease.c - deadlines that a wall clock cannot move. */
#include "node/life/lease.h"

#include <inttypes.h>

#include "base/clock.h"

struct lease_now lease_clock(void)
{
	return (struct lease_now){ .boot_ns = clock_boot_ns(), .wall_ns = clock_wall_ns() };
}

int lease_check(uint32_t timeout_s, uint64_t max_s, struct err *err)
{
	if (timeout_s <= max_s)
		return 0;
	if (max_s % 3600 == 0)
		return err_set(err, ERR_INVALID, 0,
			       "Timeout cannot be greater than %" PRIu64 " hours", max_s / 3600);
	return err_set(err, ERR_INVALID, 0, "Timeout cannot be greater than %" PRIu64 " seconds",
		       max_s);
}

void lease_begin(struct lease *l, struct lease_now now, uint32_t timeout_s)
{
	*l = (struct lease){ .run_ns = now.boot_ns,
			     .end_ns = now.boot_ns + timeout_s * NSEC_PER_SEC };
}

bool lease_move(struct lease *l, struct lease_now now, uint32_t timeout_s, uint64_t max_s,
		bool may_shorten)
{
	uint64_t end = now.boot_ns + timeout_s * NSEC_PER_SEC;
	uint64_t last = l->run_ns + max_s * NSEC_PER_SEC;

	if (end > last)
		end = last;
	if (end <= l->end_ns && !may_shorten)
		return false;
	l->end_ns = end;
	return true;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void lease_load(struct lease *l, struct lease_now now, const struct journal_row *row)
{
	const struct node_sandbox *s = &row->sandbox;

	if (row->end_boot_ns > 0 && row->run_boot_ns <= now.boot_ns) {
		*l = (struct lease){ row->run_boot_ns, row->end_boot_ns };
		return;
	}
	l->run_ns = minus(now.boot_ns, minus(now.wall_ns, s->started_ns));
	l->end_ns = now.boot_ns + minus(s->end_ns, now.wall_ns);
}

uint64_t lease_left_ns(const struct lease *l, struct lease_now now)
{
	return minus(l->end_ns, now.boot_ns);
}

uint64_t lease_end_wall(const struct lease *l, struct lease_now now)
{
	if (l->end_ns >= now.boot_ns)
		return now.wall_ns + (l->end_ns - now.boot_ns);
	return minus(now.wall_ns, now.boot_ns - l->end_ns);
}

uint64_t lease_end_shown(const struct lease *l, struct lease_now now, uint64_t shown)
{
	uint64_t end = lease_end_wall(l, now);

	return minus(end, shown) + minus(shown, end) > LEASE_JUMP_S * NSEC_PER_SEC ? end : shown;
}
