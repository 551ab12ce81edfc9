/* snapshot_join.h - one flat memory of the memory below and what changed. Blocks. */
#pragma once

#include <stdint.h>

#include "base/err.h"

/* In `folder`: `pages` is read and removed, `memory` is made, not synced. `below` is what the pages
 * differ from, and base_crc its CRC-32C; 0: not known. ERR_BASE_LOST: they are of another. */
int snapshot_join(int below, uint32_t base_crc, int folder, struct err *err) NODISCARD;
/* The same, of pages that differ from so many zeros. */
int snapshot_join_blank(uint64_t bytes, int folder, struct err *err) NODISCARD;
