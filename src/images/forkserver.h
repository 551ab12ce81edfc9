/* forkserver.h - where jobs come from: a process that was forked before there was a secret, which
 * sees only what jobs may see.
 *
 * Started as root it has namespaces of its own: mounts (view.h) and processes, of which it is the
 * first, so that whatever becomes of it, nothing that it began lives on.
 */
#pragma once

#include "images/order.h"
#include "images/places.h"

struct forkserver {
	int sock; /* -1: none */
};

enum { FORKSERVER_MS = 10000 }; /* for an answer */

/* Before anything secret is read. `set` and `p` are as they are now, for good. */
int forkserver_start(struct forkserver *f, const struct config_value *set, const struct places *p,
		     struct err *err) NODISCARD;

/* `fds` as order.h says; they stay the caller's. Returns a pidfd, and the number for ORDER_CLEAN.
 * Waits, at most FORKSERVER_MS. ERR_UNAVAILABLE: it is gone. */
int forkserver_job(struct forkserver *f, const struct order *o, const int *fds, size_t n,
		   int32_t *ret_pid, struct err *err) NODISCARD;
/* The job has ended, or was killed: nothing is left of it when this returns. */
int forkserver_clean(struct forkserver *f, const char *id, int32_t pid, struct err *err) NODISCARD;
void forkserver_end(struct forkserver *f); /* with all jobs */
