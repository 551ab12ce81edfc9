/* history.h - what a sandbox used, over time: dense for the last hour, thin for the last day.
 *
 * Two rings that grow as they are needed: a point every HISTORY_FINE_S for an hour, and one a
 * minute, the mean of its time, for a day. All of it is at most 64 KiB.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HISTORY_FINE_S = 5,
	HISTORY_FINE_MAX = 3600 / HISTORY_FINE_S,
	HISTORY_COARSE_S = 60,
	HISTORY_COARSE_MAX = 24 * 3600 / HISTORY_COARSE_S,
	HISTORY_GROW = 16, /* points at first */
};

struct history_point {
	uint32_t time_s;      /* since 1970 */
	uint32_t cpu_percent; /* of all its processors, in hundredths */
	uint32_t memory_kib, cache_kib, disk_kib;
};

struct history_ring {
	struct history_point *at; /* owned */
	uint32_t first, n, cap;
};

struct history_mean { /* of several points */
	uint64_t cpu, memory, cache;
	struct history_point last;
	size_t n;
};

struct history { /* all zero: empty */
	struct history_ring fine, coarse;
	struct history_mean minute; /* that is not over */
};

/* Without memory for it a point is lost. */
void history_add(struct history *h, const struct history_point *p);
void history_done(struct history *h);

/* False: there is none. */
bool history_latest(const struct history *h, struct history_point *ret);

/* Those of [after_s, until_s] in order, thinned to at most `max`: each is then the mean of several.
 * Returns how many. */
size_t history_get(const struct history *h, uint32_t after_s, uint32_t until_s,
		   struct history_point *ret, size_t max);
