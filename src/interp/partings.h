/* partings.h - how often has this machine parted from its clients?
 *
 * One that was paused and resumed, or is a copy, still has the connections of before, and nobody is
 * at their other ends. The agent counts that, in a file. A client that goes when the count is
 * another one did not leave: it was left behind, and its code goes on.
 */
#pragma once

#include <stdint.h>

#define PARTINGS_FILE "/run/hotcell/partings"

/* 0, too, where nobody counts. */
uint64_t partings_count(const char *file);
