/* lost_disks.h - the disks of sandboxes that lost their VMs: kept for a day, as long as there is
 * room.
 *
 * A sandbox ended because its VM is gone (NODE_LOST), and nobody wanted that: what it wrote to its
 * disk is still there. Its row goes beside it as that of one paused without its memory, and the
 * folder to lost/. Brought back, it boots from its disk.
 *
 * They take no room from anybody: when less than the reserve is free, or than what is needed, the
 * oldest go. All of these block.
 */
#pragma once

#include "base/bytes.h"

/* Is there as much as is needed, beside the reserve? If not, disks that are kept go first: for the
 * reserve as many as there are, for more only if that is enough. ERR_NO_SPACE: there is not.
 * `root` is a folder in data_dir. */
int lost_disks_room(int root, uint64_t reserve_mib, uint64_t need_mib, struct err *err) NODISCARD;
/* Was it described by lost_disk_keep()? Then its description is of the disk alone. */
bool lost_disk_is_described(int root, const char *id);
/* Folder `id` of `root` is described by `row` and goes to lost/, for good when it returns.
 * ERR_NO_SPACE: not so, for want of room; ERR_NO_FILES: nor ever, lost/ is on another
 * file system; ERR_NOT_FOUND: it has no disk, or its owner wanted it gone; anything else: it
 * cannot be told now. */
int lost_disk_keep(int root, const char *id, struct bytes row, uint64_t reserve_mib,
		   struct err *err) NODISCARD;
