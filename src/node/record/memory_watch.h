/* memory_watch.h - how much memory this host has to give, measured every second. */
#pragma once

#include "net/timer.h"

enum {
	MEMORY_MEASURE_MS = 1000,
	/* What a sandbox is counted with before it is there to be measured. Its memory is a private
	 * mapping of the template's, so it starts with little of its own; what it takes later shows
	 * in the measure, and the reserve is for what comes between two of those. One that is
	 * resumed has what was saved of it in addition, from its first moment. */
	MEMORY_SANDBOX_MIB = 64,
};

struct memory_watch {
	int meminfo; /* /proc/meminfo, held open; -1: never opened */
	struct timer every;
	uint64_t total_mib, available_mib, reserve_mib;
};

int memory_watch_open(struct memory_watch *m, struct loop *l, uint64_t reserve_mib,
		      struct err *err) NODISCARD;
void memory_watch_close(struct memory_watch *m);

void memory_watch_now(struct memory_watch *m); /* measure: much came or went just now */

/* Is there so much, of which nothing is measured yet? ERR_EXHAUSTED says why not. */
int memory_watch_allow(const struct memory_watch *m, uint64_t mib, struct err *err) NODISCARD;

/* How much guest memory may be promised in all, in MiB, with `percent` of what may be used. */
uint64_t memory_promise_max(const struct memory_watch *m, uint64_t percent);

/* The value of `name` in the text of /proc/meminfo, in MiB. */
int memory_parse(const char *meminfo, const char *name, uint64_t *ret_mib,
		 struct err *err) NODISCARD;
