/* snapshot_join.h - one flat memory of the memory below and what changed. Blocks. */
#pragma once

#include "base/err.h"

/* In `folder`: `pages` is read and removed, `memory` is made, not synced. `below` is what the pages
 * differ from. */
int snapshot_join(int below, int folder, struct err *err) NODISCARD;
