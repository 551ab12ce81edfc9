/* checksum.h - length and CRC-32C of a file. Holes count as zeros and are not read. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { CHECKSUM_CHUNK = 256 * 1024 }; /* read at once, in bytes */

struct checksum {
	uint64_t length;
	uint32_t crc;
};

static inline bool checksum_eq(const struct checksum *a, const struct checksum *b)
{
	return a->length == b->length && a->crc == b->crc;
}

/* Blocks: for a thread that may. `fd` is a regular file; its offset moves. When *stop becomes
 * true, ends soon with ERR_UNAVAILABLE. A file that shrinks meanwhile is an error. */
int checksum_file(int fd, const atomic_bool *stop, struct checksum *ret, struct err *err) NODISCARD;
