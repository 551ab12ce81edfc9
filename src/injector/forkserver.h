/* forkserver.h - where workers come from: a process that was forked before there was a secret.
 *
 * A worker reads what guests and servers send, so nothing may be in its memory but what it needs.
 * A fork of the injector would have the keys of the whole installation in it. The forkserver has
 * none: it is given descriptors, forks, and the child alone reads what is in them. It reads no
 * input.
 */
#pragma once

#include "base/err.h"

struct forkserver {
	int sock; /* -1: none */
};

enum { FORKSERVER_MS = 10000 }; /* for a worker to be there */

struct forkserver_terms {
	const char *user;     /* to become when started as root; "" stays */
	const char *extra_ca; /* beside the system's; "": none */
};

/* Before anything secret is read. */
int forkserver_start(struct forkserver *n, const struct forkserver_terms *t,
		     struct err *err) NODISCARD;

/* A worker that serves `channel` and is told by the file in memory `text` (worker.h); both stay the
 * caller's. Returns its pidfd. Waits, at most FORKSERVER_MS. ERR_UNAVAILABLE: the forkserver is
 * gone. */
int forkserver_raise(struct forkserver *n, int channel, int text, struct err *err) NODISCARD;
void forkserver_end(struct forkserver *n); /* with all workers */
