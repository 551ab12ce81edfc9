/* manifest.h - what a template was made with, written once beside it, read before every use.
 *
 * The text is JSON. Whoever can write it can write the template too, yet it is parsed as if it
 * were hostile. manifest_check.h compares it with what is found here.
 */
#pragma once

#include "base/bytes.h"
#include "vm/checksum.h"

enum {
	MANIFEST_FORMAT_VERSION = 1,
	MANIFEST_BYTES_MAX = 16 * 1024,
	MANIFEST_ID_MAX = 63,
	MANIFEST_TEXT_MAX = 127,
	MANIFEST_ARGUMENTS_MAX = 1535,
	MANIFEST_PACKAGES_MAX = 2047,
	MANIFEST_LAYERS_MAX = 16,
	MANIFEST_VCPUS_MAX = 255,
	MANIFEST_MEMORY_MIB_MAX = 1024 * 1024,
};

enum manifest_file {
	MANIFEST_KERNEL_FILE,
	MANIFEST_DISK_FILE,
	MANIFEST_OVERLAY_FILE,
	MANIFEST_MEMORY_FILE,
	MANIFEST_STATE_FILE,
	MANIFEST_FILES,
};

/* What a snapshot depends on. */
struct manifest_facts {
	char vmm_version[MANIFEST_TEXT_MAX + 1];
	char cpu_model[MANIFEST_TEXT_MAX + 1];
	char accel[MANIFEST_TEXT_MAX + 1];
	char arguments[MANIFEST_ARGUMENTS_MAX + 1];
	char kernel_version[MANIFEST_TEXT_MAX + 1];
	char agent_version[MANIFEST_TEXT_MAX + 1]; /* may be empty */
	uint32_t vcpus, memory_mib;
};

struct manifest { /* every text is printable ASCII */
	char template_id[MANIFEST_ID_MAX + 1];
	char created[MANIFEST_TEXT_MAX + 1]; /* RFC 3339, UTC */
	struct manifest_facts made_with;
	struct checksum files[MANIFEST_FILES];
	char packages[MANIFEST_PACKAGES_MAX + 1]; /* package_hosts.h; empty: none */
	/* Of a snapshot: the files of its disk below `overlay`, which is the highest; the lowest
	 * first. A length of 0: not known. None: there are none, or it was made before. */
	struct checksum layers[MANIFEST_LAYERS_MAX];
	size_t n_layers;
};

/* Appends the text of `m`. ERR_INVALID when a text of it is empty or not printable ASCII. */
int manifest_put(const struct manifest *m, struct buf *out, struct err *err) NODISCARD;

/* Refuses with ERR_MISMATCH whatever is not what manifest_put() writes: another format, a member
 * missing or unknown, a text or a number out of bounds. */
int manifest_parse(struct bytes in, struct manifest *ret, struct err *err) NODISCARD;

/* What a sandbox made of it differs from: CRC-32C of the memory (upper half) and of the lowest
 * disk. 0 stands for "not known", for what was written before there were such sums. */
static inline uint64_t manifest_sums(const struct manifest *m)
{
	return (uint64_t)m->files[MANIFEST_MEMORY_FILE].crc << 32 |
	       m->files[MANIFEST_DISK_FILE].crc;
}
static inline uint32_t sums_memory(uint64_t sums)
{
	return (uint32_t)(sums >> 32);
}
static inline uint32_t sums_disk(uint64_t sums)
{
	return (uint32_t)sums;
}

/* A disk alone: there is no memory and no device state, and it can only be booted. */
static inline bool manifest_is_disk(const struct manifest *m)
{
	return m->files[MANIFEST_MEMORY_FILE].length == 0 &&
	       m->files[MANIFEST_STATE_FILE].length == 0;
}

const char *manifest_file_name(enum manifest_file f); /* "kernel" */

/* `wall_ns` of clock_wall_ns() as RFC 3339 in UTC, to the second. */
void manifest_time(uint64_t wall_ns, char ret[static MANIFEST_TEXT_MAX + 1]);
