/* disk.h - an ext4 file system in a file, written without mounting it. libext2fs behind a wall.
 *
 * Nothing in it depends on the time, on chance, or on the host and its mke2fs.conf: the same calls
 * give the same bytes.
 */
#pragma once

#include <ext2fs/ext2fs.h>
#include <stdint.h>

#include "base/bytes.h"

enum {
	DISK_BLOCK = 4096,
	DISK_PIECE = 256 * DISK_BLOCK, /* what is written at once */
};

/* Of the file system, and of what has no time of its own: the first second of 2026. */
#define DISK_TIME 1767225600

struct disk {
	ext2_filsys fs;
	int fd;
	blk64_t goal;   /* where the next block goes: behind the last one */
	blk64_t end;    /* nothing was written behind it */
	uint8_t *piece; /* DISK_PIECE bytes, of the file that is being written */
};

/* Of an inode. mode has the type, too. */
struct attributes {
	uint16_t mode;
	uint32_t uid, gid;
	int64_t seconds;
	uint32_t nanoseconds;
};

struct xattr {
	const char *name; /* with its prefix: user., security. */
	struct bytes value;
};

/* `fd` is an empty regular file, and becomes `mib` MiB long, mostly a hole. It stays the caller's.
 */
int disk_make(struct disk *d, int fd, uint64_t mib, struct err *err) NODISCARD;
/* All that is only in memory goes to the file; what is free is a hole again. */
int disk_finish(struct disk *d, struct err *err) NODISCARD;
/* Fine after either, and after a failure of either. Writes nothing. */
void disk_done(struct disk *d);

/* What libext2fs says, in our words. Always returns -1. */
int disk_err(struct err *err, errcode_t rc, const char *what);
