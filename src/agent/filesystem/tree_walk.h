/* tree_walk.h - everything below a directory, one entry per call: depth first, in the order of the
 * bytes of the names, a directory before what is in it. Symbolic links below are not followed.
 *
 * Holds the names of the directories on the way, and no descriptor between calls.
 */
#pragma once

#include "agent/user_path.h"

enum {
	TREE_NAMES_MAX = 32 * 1024 * 1024, /* of one directory, in bytes */
	TREE_LEVELS_MAX = USER_PATH_MAX / 2,
};

struct tree_level;
struct tree_walk { /* all zero: nothing */
	char path[USER_PATH_MAX];
	struct tree_level *levels;
	size_t n_levels, cap;
	uint32_t depth; /* levels below the root that are entered */
	bool enter;     /* the entry given out last is a directory to be entered */
};

struct tree_entry {
	const char *path; /* valid until the next call */
	bool is_dir;
};

/* The root itself may be a symbolic link. err->sys tells why it cannot be read. */
int tree_walk_open(struct tree_walk *w, const char *root, uint32_t depth,
		   struct err *err) NODISCARD;
void tree_walk_close(struct tree_walk *w);

/* 1: *ret is set. 0: that was all. What vanishes meanwhile is left out, with all that was in it. */
int tree_walk_next(struct tree_walk *w, struct tree_entry *ret, struct err *err) NODISCARD;
void tree_walk_skip(struct tree_walk *w); /* do not enter the directory given out last */
