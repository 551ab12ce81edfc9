/* disk_use.h - what each folder takes of the disk: of its own, and together with others. It blocks.
 */
#pragma once

#include "base/err.h"
#include "node/protocol.h"

enum {
	DISK_USE_MAX = 16 * 1024, /* folders that are looked at */
	DISK_USE_FILES_MAX = 64,  /* files of one */
};

struct disk_use {
	char id[NODE_ID_MAX + 1]; /* the name of the folder */
	/* Bytes of blocks. What goes with the folder; what is in files that others have, too: by a
	 * hard link. Blocks that the file system shares count as own */
	uint64_t own, shared;
};

struct disk_uses {
	struct disk_use *all; /* in no order */
	size_t n;
};

/* Of every folder in `dir`; *ret is to be done also after a failure. */
int disk_use_look(int dir, struct disk_uses *ret, struct err *err) NODISCARD;
/* Of the files of one folder, no deeper. */
void disk_use_of(int folder, struct disk_use *ret);
void disk_uses_done(struct disk_uses *u);
