/* jail_calls.h - the system calls that jail_probe tries. */
#pragma once

#include <stdint.h>

/* Try each, and print what the kernel answered. `own_path` names the running program; `text` is
 * "look ABSTRACT KEY QUEUE": names of a socket and of IPC objects that exist on the host. */
void calls_try(const char *own_path, const char *text);

/* Try to give the overlay more room than `limit` bytes, the largest size of its files. */
void calls_grow(uint64_t limit);

/* getpid by other doors into the kernel: a filter must know them all. */
long calls_i386_getpid(void);
long calls_x32_getpid(void);
