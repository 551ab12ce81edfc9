/* watched_dirs.h - which directory an inotify watch is of: numbers to paths.
 *
 * Paths are relative to the root of what is watched, which itself is "".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum { WATCHED_DIRS_MAX = 128 * 1024 };

struct watched_dir {
	int wd;
	char *path;
};

struct watched_dirs {          /* all zero: none */
	struct watched_dir *v; /* sorted by wd */
	size_t n, cap;
};

/* The path of a number that is known already is replaced. */
int watched_dirs_set(struct watched_dirs *d, int wd, const char *path, struct err *err) NODISCARD;
const char *watched_dirs_find(const struct watched_dirs *d, int wd); /* NULL: none */
void watched_dirs_drop(struct watched_dirs *d, int wd);

/* `top` and all below it is called `to` from now on. Without memory it is forgotten: false. */
bool watched_dirs_rename(struct watched_dirs *d, const char *top, const char *to);

/* `top` and all below it is forgotten; `gone` is told each number. */
void watched_dirs_forget(struct watched_dirs *d, const char *top, void (*gone)(void *ctx, int wd),
			 void *ctx);
void watched_dirs_done(struct watched_dirs *d);
