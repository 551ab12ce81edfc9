/* tree_remove.h - a file, or a directory with all that is in it, removed in small steps.
 *
 * No depth stops it: what lies deeper than a few levels is first moved up. Symbolic links are
 * removed, not followed.
 */
#pragma once

#include <dirent.h>
#include <limits.h>

#include "agent/user_path.h"

enum {
	TREE_REMOVE_LEVELS = 32,  /* descriptors in use at once */
	TREE_REMOVE_STEPS = 512,  /* entries per call */
	TREE_REMOVE_TRIES = 1000, /* a directory that others keep filling */
};

struct tree_remove { /* all zero: nothing */
	char path[USER_PATH_MAX];
	size_t n;
	struct {
		DIR *dir;
		unsigned int tries;
		char name[NAME_MAX + 1]; /* in the level above */
	} levels[TREE_REMOVE_LEVELS];
};

void tree_remove_open(struct tree_remove *r, const char *path);
void tree_remove_close(struct tree_remove *r);

/* 1: call again. 0: it is gone, or never was. */
int tree_remove_step(struct tree_remove *r, struct err *err) NODISCARD;
