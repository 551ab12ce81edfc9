/* files_held.h - files that are removed now and cost time later.
 *
 * A file loses its name at once, and its blocks, which takes seconds if there are many, when the
 * last descriptor is closed. Whoever waits for a removal waits for the name alone.
 */
#pragma once

#include "base/err.h"

enum { FILES_HELD_MAX = 16 }; /* of one folder; those above are waited for */

struct files_held { /* all zero: nothing */
	int fds[FILES_HELD_MAX];
	size_t n;
};

/* Before the folder `name` is removed. It may be absent. */
void files_hold(struct files_held *h, int dir, const char *name);
void files_let_go(struct files_held *h); /* blocks: never on the loop */
