/* resources.h - what a program started for a VM may use, beside the limits of its control group. */
#pragma once

#include <stdint.h>

#include "base/err.h"

struct resources {
	uint32_t descriptors;
	uint64_t file_bytes; /* no file grows beyond this; 0: no limit */
};

/* No core dumps of this process and its children, whatever kernel.core_pattern says: where it pipes
 * them to a program, 0 is no limit at all, and 1 byte is what the kernel takes for "none". */
int resources_no_core(struct err *err) NODISCARD;

/* Before exec: these, no core dumps, no huge pages (a small process would pay 2 MiB for each 4 KiB
 * it touches), and every signal as usual. A write beyond file_bytes fails with EFBIG and does not
 * end the program. */
int resources_limit(const struct resources *l, struct err *err) NODISCARD;
