/* path.h - from the names in a layer to nodes of the tree, and never anywhere else.
 *
 * A symlink on the way is followed as a container runtime follows it: inside the image, where
 * `/` is the image's root and nothing is above it.
 */
#pragma once

#include "unpack/limits.h"
#include "unpack/tree.h"

/* What a name in an image never begins with: in a layer it means that something is hidden. */
#define PATH_WHITEOUT ".wh."

/* Its components, without empty ones and `.`: the folder they are in, and the last. */
struct path {
	char text[UNPACK_PATH_MAX + 1]; /* a/b/c */
	struct bytes folder;            /* a/b; empty: the root */
	struct name last;               /* c; empty: the path means the root itself */
};

/* Refused: an empty path, `..`, a component or a path that is too long. A `/` at the beginning
 * means the image's root. */
int path_read(struct bytes text, struct path *ret, struct err *err) NODISCARD;

enum missing { MISSING_REFUSE, MISSING_NULL, MISSING_MAKE };

/* The folder that a path of components leads to, `..` among them in targets of symlinks.
 * ERR_NOT_FOUND: there is none (MISSING_NULL: *ret is NULL). ERR_INVALID: something on the way is
 * not a folder, or symlinks go in circles. `disk` is for folders that are made. */
int path_folder(struct tree *t, struct disk *d, struct bytes text, enum missing missing,
		struct node **ret, struct err *err) NODISCARD;

/* What an absolute path means to a program in the guest: the last symlink is followed, too.
 * *ret is NULL: there is nothing, or nothing that can be reached. */
int path_find(struct tree *t, const char *text, struct node **ret, struct err *err) NODISCARD;
