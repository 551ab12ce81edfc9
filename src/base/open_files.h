/* open_files.h - how many descriptors a process may have. */
#pragma once

#include <stdint.h>

/* As many as it may: up to the hard limit, which is raised to `want` if it is lower and that is
 * allowed. Returns what it came to, 0 if that is not known. */
uint64_t open_files_raise(uint64_t want);
