/* read_all.h - a whole file, or a short text, in one call. Blocks. */
#pragma once

#include <sys/types.h>

#include "base/bytes.h"

/* Up to its end, behind what is in `ret`, whose maximum holds. */
int read_all(int fd, struct buf *ret, struct err *err) NODISCARD;

/* The beginning of a file, up to size - 1 bytes, as a string: files of /proc and /sys, or of ours.
 * Returns how many, or -1 with errno and an empty string. */
ssize_t read_text(int dir, const char *path, char *ret, size_t size);
