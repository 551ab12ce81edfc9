/* descriptors.h - which descriptors a program gets, and whether those that came are what they
 * should be. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

enum { DESCRIPTORS_MAX = 32 };

/* Before exec: fds[i] gets the number i, for all n (at most DESCRIPTORS_MAX; -1: the number stays
 * free); all others close at exec. *also is the caller's own until then, and gets a new number. */
int descriptors_arrange(const int *fds, size_t n, int *also, struct err *err) NODISCARD;

/* From another process: a file of this type (S_IFREG, S_IFSOCK), opened for exactly this access
 * (O_RDONLY, O_RDWR). ERR_INVALID when not; `what` names it. */
int descriptors_check(int fd, mode_t type, int access, const char *what, struct err *err) NODISCARD;
