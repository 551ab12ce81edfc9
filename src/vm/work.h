/* work.h - something that blocks, on a thread of its own; its end is told on the loop.
 *
 *	run --bell--> on_done        and, of a job that has one,        after --bell--> on_end
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
	void (*after)(struct work *w);  /* on the thread: what nobody waits for; may be NULL */
	void (*on_end)(struct work *w); /* on the loop, once, when that is over */
	void (*free)(struct work *w); /* the last call, on either: what the job owns, and itself */
	atomic_bool stop;             /* the owner lost interest: end soon */
	atomic_int holders;
	int bell;
	uint64_t rung_times;
	struct watch rung;
	int rc;
	struct err err;
};

/* Takes w in any case. `run`, `on_done` and `free` must be set, `after` and `on_end` together. */
int work_start(struct work *w, struct loop *l, struct err *err) NODISCARD;

/* Not from a callback. on_done and on_end will not come; w is no longer the owner's. */
void work_cancel(struct work *w);
