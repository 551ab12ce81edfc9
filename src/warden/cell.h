/* cell.h - the VMs of this host as warden knows them, and their four states.
 *
 *	STARTING --job done--> RUNNING --process gone--> EXITED
 *	    any of them --stop--> STOPPING --files removed--> (forgotten)
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "warden/record.h"

enum { CELLS_MAX = 2048 };

/* Who waits for an answer. The client may be gone by then, and its place taken by another. */
struct waiting {
	uint32_t client, generation;
	uint64_t tag;
	char request[WARDEN_REQUEST_MAX + 1]; /* in logs; "": of none */
};

struct cell {
	struct record record; /* id[0] == 0: a free place in the table */
	enum warden_cell_state state;
	pid_t pid;
	int pidfd;              /* -1 until it runs */
	int netns;              /* of its slot, held for new sockets */
	struct waiting stopper; /* who is told when it is gone */
	bool removal_due;       /* to be begun again, by lifecycle_retry() */
};

struct cells {
	struct cell all[CELLS_MAX];
	uint32_t count;
};

struct cell *cell_add(struct cells *t, const struct record *r, struct err *err) NODISCARD;
struct cell *cell_find(struct cells *t, const char *id); /* NULL when there is none */
/* Does a VM build it? Or, not `build`, is there one of it at all? */
bool cell_uses(const struct cells *t, const char *template_id, bool build);
void cell_enter(struct cell *c, enum warden_cell_state next); /* an illegal step aborts */
void cell_forget(struct cells *t, struct cell *c);            /* closes what it holds */

/* The first whose id sorts after `id`; NULL at the end. */
struct cell *cell_after(struct cells *t, const char *id);
