/* pool_policy.h - how many VMs the pool of a snapshot should have. Pure: of times and numbers.
 *
 * The wish follows use. Each create adds one to a count that decays: it is halved
 * POOL_HALF_LIVES times in the time after which an unused pool is emptied (`pool_unused_s`). Of
 * what is left every POOL_CREATES_PER_VM want a VM. A pool that was used at all wants one until
 * that time is over, and then none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	POOL_POINTS = 256,       /* what one create counts, in points: the count has fractions */
	POOL_CREATES_PER_VM = 4, /* 4 at once want one VM, 5 want two */
	POOL_HALF_LIVES = 4,     /* with 300 s the count is halved every 75 s */
	POOL_POINTS_MAX = 1 << 24,
	POOL_HOLD = 2, /* one that has a VM counts so often when the budget is shared: whoever is
			* used as much does not take it away, which would be of use to nobody */
};

struct pool_use {        /* all zero: never used */
	uint64_t points; /* as of at_ms */
	uint64_t at_ms;  /* of the last create, by a clock that never goes back; 0: never */
};

struct pool_limits {
	uint64_t unused_ms; /* at least POOL_HALF_LIVES */
	size_t max;         /* VMs of one source */
};

void pool_used(struct pool_use *u, uint64_t now_ms, uint64_t unused_ms); /* a create came */
/* What is left of its use: who has less shrinks first. */
uint64_t pool_points(const struct pool_use *u, uint64_t now_ms, uint64_t unused_ms);
size_t pool_target(const struct pool_use *u, uint64_t now_ms, struct pool_limits limits);
