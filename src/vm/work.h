/* work.h - something that blocks, on a thread of its own; its end is told on the loop.
 *
 * A job lives on the heap and is shared by its thread and its owner until both let go, so that an
 * owner who lost interest need not wait. The thread touches nothing but the job.
 */
#pragma once

#include <stdatomic.h>

#include "net/watch.h"

struct work { /* the first member of a job made with calloc() */
	int (*run)(struct work *w, struct err *err);            /* on the thread */
	void (*on_done)(struct work *w, const struct err *err); /* on the loop, once; NULL: fine */
	void (*free)(struct work *w); /* the last call, on either: what the job owns, and itself */
	atomic_bool stop;             /* the owner lost interest: end soon */
	atomic_int holders;
	int bell;
	struct watch rung;
	int rc;
	struct err err;
};

/* Takes w in any case. `run`, `on_done` and `free` must be set. */
int work_start(struct work *w, struct loop *l, struct err *err) NODISCARD;

void work_cancel(struct work *w); /* on_done will not come; w is no longer the owner's */
