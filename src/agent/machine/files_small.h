/* files_small.h - whole small files of the guest: read, replace, overwrite. */
#pragma once

#include <sys/types.h>

#include "base/bytes.h"

/* All of it, appended to `out`. ERR_NOT_FOUND: missing. ERR_EXHAUSTED: over out->max. Only
 * regular files: a FIFO in the place of one is refused, not waited for. */
int file_read(const char *path, struct buf *out, struct err *err) NODISCARD;
int file_read_if_any(const char *path, struct buf *out, struct err *err) NODISCARD; /* or missing */

/* The file holds `content`. Nothing is written when it holds it already, so that a full disk is no
 * obstacle then; a plain file is overwritten where it is, which costs no journal; anything else in
 * its place gives way. For files that nobody reads at this moment. */
int file_settle(const char *path, struct bytes content, mode_t mode, struct err *err) NODISCARD;

/* The file stays the one it is: for files that others have mounted or mapped. */
int file_overwrite(const char *path, struct bytes content, mode_t mode, struct err *err) NODISCARD;

/* A file that is missing is made, with room for a first page: overwriting it then allocates
 * nothing. One that is there stays as it is. */
int file_prepare(const char *path, struct bytes content, mode_t mode, struct err *err) NODISCARD;

/* For files of the kernel: one write, nothing created. */
int file_poke(const char *path, struct bytes content, struct err *err) NODISCARD;

int dir_settle(const char *path, mode_t mode, struct err *err) NODISCARD; /* exists, or is made */
