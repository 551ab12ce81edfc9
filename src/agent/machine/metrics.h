/* metrics.h - how busy and how full this machine is. */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

struct cpu_times { /* in ticks since boot */
	uint64_t busy, total;
};

struct memory_sizes { /* in bytes */
	uint64_t total, used, cache;
};

/* From the texts of /proc/stat and /proc/meminfo. */
int metrics_cpu(struct bytes stat, struct cpu_times *ret, struct err *err) NODISCARD;
int metrics_memory(struct bytes meminfo, struct memory_sizes *ret, struct err *err) NODISCARD;
