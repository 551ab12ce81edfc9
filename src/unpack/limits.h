/* limits.h - how much of anything an image may have. Whoever wrote the layers is hostile. */
#pragma once

#include <stdint.h>

enum {
	UNPACK_LAYERS_MAX = 127,
	UNPACK_ENTRIES_MAX = 1000000, /* of all layers together, folders nobody named included */
	UNPACK_NAME_MAX = 255,        /* in bytes, as ext4 has it */
	UNPACK_PATH_MAX = 4095,       /* of an entry, and of what a link points to */
	UNPACK_DEPTH_MAX = 512,       /* folders in folders */
	UNPACK_LINKS_MAX = 40,        /* symlinks on one way, as Linux has it */
	UNPACK_HARD_LINKS_MAX = 65000,
	UNPACK_XATTRS_MAX = 32, /* of one entry; all have to fit into one block as well */
	UNPACK_DISK_MIB_MIN = 32,
	UNPACK_DISK_MIB_MAX = 1024 * 1024,
	UNPACK_AGENT_MAX = 64 * 1024 * 1024, /* bytes */
	UNPACK_CPU_SECONDS = 900,
};

#define UNPACK_BYTES_MAX     (8ull << 30)   /* of all files of all layers */
#define UNPACK_FILE_MAX      (1ull << 40)   /* how long one file may say it is: holes count here */
#define UNPACK_NAMES_MAX     (192ull << 20) /* bytes of names and of targets of symlinks in memory */
#define UNPACK_STEPS_MAX     (200ull << 20) /* components of paths and nodes that are looked at */
#define UNPACK_MEMORY_MAX    (1ull << 30)
#define UNPACK_PROGRESS_STEP (64ull << 20) /* bytes between two lines of progress */
