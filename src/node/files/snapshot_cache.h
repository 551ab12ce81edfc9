/* snapshot_cache.h - snapshots and templates in the page cache: read ahead, and let go of. */
#pragma once

#include "node/files/files_work.h"

/* FILES_SNAP_WARM: its first `need_mib` of data. The kernel reads while others go on. */
int snapshot_cache_warm(struct files_work *w, struct err *err) NODISCARD;
/* FILES_SNAP_COOL, FILES_BASE_COOL: all of it but what others share. What a VM has mapped stays. */
int snapshot_cache_cool(struct files_work *w, struct err *err) NODISCARD;
int template_cache_cool(struct files_work *w, struct err *err) NODISCARD;
