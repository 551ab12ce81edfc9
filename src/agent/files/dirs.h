/* dirs.h - directories on the way to something, made for a user where they are missing. */
#pragma once

#include "agent/accounts.h"

/* One step down from `dir`, into a directory that is made if it is missing: 0755, and the user's.
 * Symbolic links are followed. A descriptor (O_PATH), or -1 and errno. */
int dirs_step(int dir, const char *name, const struct account *who) NODISCARD;

/* All of an absolute path, or (dirs_make_parents) all but its last segment. -1 and errno. */
int dirs_make(const char *path, const struct account *who) NODISCARD;
int dirs_make_parents(const char *path, const struct account *who) NODISCARD;
