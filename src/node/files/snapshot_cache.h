/* snapshot_cache.h - the memory of a snapshot in the page cache: read ahead, and let go of. */
#pragma once

#include "node/files/files_work.h"

/* FILES_SNAP_WARM: its first `need_mib` of data. The kernel reads while others go on. */
int snapshot_cache_warm(struct files_work *w, struct err *err) NODISCARD;
/* FILES_SNAP_COOL: all of it. What a VM has mapped stays. */
int snapshot_cache_cool(struct files_work *w, struct err *err) NODISCARD;
