/* memory_file.h - a text between two processes that no message holds: a file in memory, passed as a
 * descriptor. Reading it waits for nobody.
 *
 * Who makes one says so: #syscalls memfd_create pwrite64; who reads one: fstat pread64.
 */
#pragma once

#include "base/bytes.h"

/* A descriptor, the caller's. `name` is for people who look into /proc. */
int memory_file_make(const char *name, struct bytes text, struct err *err) NODISCARD;

/* All of it, at least a byte and no more than `text` may hold, appended. The descriptor came from
 * somebody else: what is no plain file is refused. */
int memory_file_read(int fd, struct buf *text, struct err *err) NODISCARD;
