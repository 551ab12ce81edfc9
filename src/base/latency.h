/* latency.h - how long things took: a count for each of a few bounds, in fixed memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { LATENCY_BOUNDS = 14 };

struct latency {                         /* all zero: nothing yet */
	uint64_t in[LATENCY_BOUNDS + 1]; /* at most so long, and longer than the one before; the
					    last: longer than all */
	uint64_t count, sum_us;
};

/* From what a pool gives to what a boot without KVM takes. */
static inline uint32_t latency_bound_ms(size_t i)
{
	static const uint32_t all[LATENCY_BOUNDS] = {
		5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000
	};

	return all[i];
}

static inline void latency_add(struct latency *l, uint64_t us)
{
	size_t i = 0;

	while (i < LATENCY_BOUNDS && us > (uint64_t)latency_bound_ms(i) * 1000)
		i++;
	l->in[i]++;
	l->count++;
	l->sum_us += us;
}
