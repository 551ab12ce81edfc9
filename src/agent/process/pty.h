/* pty.h - a pseudo terminal of a given size. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { PTY_COLS = 80, PTY_ROWS = 24 }; /* when a client does not say */

struct pty_size { /* 0: not said */
	uint16_t cols, rows;
};

/* Both ends are owned by the caller. The terminal belongs to `owner`, so that programs may open it
 * by its name. */
int pty_open(const struct pty_size *size, uid_t owner, int *ret_master, int *ret_slave,
	     struct err *err) NODISCARD;

/* What is not said stays as it is. The programs in the foreground get SIGWINCH. */
int pty_resize(int master, const struct pty_size *size, struct err *err) NODISCARD;
