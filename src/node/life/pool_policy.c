/* pool_policy.c - a count of creates that decays, and what it asks for. */
#include "node/life/pool_policy.h"

/* Halved in each half-life; between two of them on a straight line. */
uint64_t pool_points(const struct pool_use *u, uint64_t now_ms, uint64_t unused_ms)
{
	uint64_t half_ms = unused_ms / POOL_HALF_LIVES;
	uint64_t past_ms = now_ms > u->at_ms ? now_ms - u->at_ms : 0, points;

	if (past_ms >= unused_ms || half_ms == 0)
		return 0;
	points = u->points >> past_ms / half_ms;
	return points - points * (past_ms % half_ms) / (2 * half_ms);
}

void pool_used(struct pool_use *u, uint64_t now_ms, uint64_t unused_ms)
{
	uint64_t points = pool_points(u, now_ms, unused_ms) + POOL_POINTS;

	u->points = points < POOL_POINTS_MAX ? points : POOL_POINTS_MAX;
	u->at_ms = now_ms;
}

size_t pool_target(const struct pool_use *u, uint64_t now_ms, struct pool_limits limits)
{
	const uint64_t per_vm = POOL_POINTS * POOL_CREATES_PER_VM;
	uint64_t vms;

	if (u->points == 0 || now_ms >= u->at_ms + limits.unused_ms)
		return 0;
	vms = (pool_points(u, now_ms, limits.unused_ms) + per_vm - 1) / per_vm;
	if (vms == 0)
		vms = 1; /* it was used, and not so long ago */
	return vms < limits.max ? (size_t)vms : limits.max;
}
