/* memory_watch.h - how much memory this host has to give, measured every second. */
#pragma once

#include "net/timer.h"

enum {
	MEMORY_MEASURE_MS = 1000,
	/* What a sandbox is counted with before it is there to be measured. Its memory is a private
	 * mapping of the template's, so it starts with little of its own; what it takes later shows
	 * in the measure, and the reserve is for what comes between two of those. */
	MEMORY_SANDBOX_MIB = 64,
};

struct memory_watch {
	int meminfo; /* /proc/meminfo, held open; -1: never opened */
	struct timer every;
	uint64_t available_mib, reserve_mib;
};

int memory_watch_open(struct memory_watch *m, struct loop *l, uint64_t reserve_mib,
		      struct err *err) NODISCARD;
void memory_watch_close(struct memory_watch *m);

/* May `more` sandboxes come, which cannot be measured yet? ERR_EXHAUSTED says why not. */
int memory_watch_allow(const struct memory_watch *m, size_t more, struct err *err) NODISCARD;

/* The value of MemAvailable in the text of /proc/meminfo, in MiB. */
int memory_parse(const char *meminfo, uint64_t *ret_mib, struct err *err) NODISCARD;
