/* dial.h - connect, with a deadline. */
#pragma once

#include "net/addr.h"
#include "net/stream.h"
#include "net/timer.h"
#include "net/watch.h"

enum { DIAL_RETRY_MS = 5 }; /* a unix socket whose backlog is full */

struct dial;
typedef void dial_done_fn(struct dial *d, struct stream *s, const struct err *err);
struct dial { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop: a stream that is now the callee's, or NULL and why (ERR_TIMEOUT,
	 * ERR_UNAVAILABLE). The dial is over and may be freed or started again. */
	dial_done_fn *on_done;
	struct loop *loop;
	int fd;
	struct addr to;
	struct watch ready;
	struct timer deadline, retry;
};

/* Failure (-1) means that on_done will not come. */
int dial_start(struct dial *d, struct loop *l, const struct addr *to, uint64_t deadline_ms,
	       dial_done_fn *on_done, struct err *err) NODISCARD;

/* The same with an unconnected socket made by another process, perhaps in another network
 * namespace. Takes fd, also on failure. */
int dial_start_fd(struct dial *d, struct loop *l, int fd, const struct addr *to,
		  uint64_t deadline_ms, dial_done_fn *on_done, struct err *err) NODISCARD;

void dial_cancel(struct dial *d); /* on_done will not come; fine when nothing is under way */
