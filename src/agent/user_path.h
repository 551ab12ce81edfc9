/* user_path.h - what a path means to a user: "~", relative to home, or absolute. */
#pragma once

#include "agent/accounts.h"

enum { USER_PATH_MAX = 4096 }; /* with its NUL, as the kernel has it */

/* Empty: `workdir`, or the user's home when that is empty too. "~" and "~/x": below home.
 * Relative: below home. Absolute: as it is. The result is absolute; it need not exist. */
int user_path(struct bytes path, const struct account *who, const char *workdir,
	      char ret[static USER_PATH_MAX], struct err *err) NODISCARD;

/* The last segment of an absolute path: "/" has none and gives "/". */
const char *path_name(const char *path);

/* An absolute path without "//", "/./" and a slash at its end; ".." stays, as it may lead through
 * a symbolic link. */
void path_tidy(char *path);
