/* lease.h - how long a run of a sandbox lasts.
 *
 * A deadline is a time of CLOCK_BOOTTIME, which goes on while the host sleeps and never jumps: when
 * somebody sets the wall clock, nobody's sandbox ends early or late. end_ns, which people see, is
 * derived from it. A VM does not outlive a boot of its host, so neither needs the deadline to.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "node/journal/journal.h"

enum {
	LEASE_MAX_MIN_S = 60, /* of the setting timeout_max_s */
	LEASE_JUMP_S = 1,     /* less is none */
};

struct lease_now { /* read together */
	uint64_t boot_ns, wall_ns;
};
struct lease { /* of CLOCK_BOOTTIME; all zero: none */
	uint64_t run_ns, end_ns;
};

struct lease_now lease_clock(void);

/* ERR_INVALID: longer than any may be. */
int lease_check(uint32_t timeout_s, uint64_t max_s, struct err *err) NODISCARD;

/* A run begins: created or resumed. */
void lease_begin(struct lease *l, struct lease_now now, uint32_t timeout_s);
/* To end timeout_s from now, but not after run_ns + max_s. False: it stays as it is, because it
 * would be shortened and may not be. */
bool lease_move(struct lease *l, struct lease_now now, uint32_t timeout_s, uint64_t max_s,
		bool may_shorten);
/* After a restart of node. A row that lacks it, or is of another boot, has its wall times only. */
void lease_load(struct lease *l, struct lease_now now, const struct journal_row *row);

uint64_t lease_left_ns(const struct lease *l, struct lease_now now); /* 0: it is over */
/* As a time of the wall clock as it is now. Over: when it was. */
uint64_t lease_end_wall(const struct lease *l, struct lease_now now);
/* The same, but `shown`, what was told before, as long as no clock jumped: people see one time. */
uint64_t lease_end_shown(const struct lease *l, struct lease_now now, uint64_t shown);
