/* workers.h - the workers that live, by slot. */
#pragma once

#include "net/watch.h"
#include "injector/keys.h"
#include "injector/forkserver.h"
#include "injector/protocol.h"

struct workers;
struct workers_ops {
	/* One ended by itself. From the loop. */
	void (*on_gone)(struct workers *w, uint32_t slot);
};

struct worker_slot {
	struct workers *of;
	int pidfd;
	struct watch ended;
};

struct workers { /* embedded */
	const struct workers_ops *ops;
	struct loop *loop;
	const struct keys *keys; /* borrowed, as the forkserver is */
	struct forkserver *forkserver;
	struct worker_slot *all[INJECTOR_SLOTS_MAX];
};

/* A new one for the slot, which must be below INJECTOR_SLOTS_MAX; the one it had is ended first.
 * Returns egress's end of its channel. */
int workers_start(struct workers *w, const struct injector_request *rq, struct bytes text,
		  struct err *err) NODISCARD;
void workers_stop(struct workers *w, uint32_t slot); /* without one: nothing */
void workers_stop_all(struct workers *w);
