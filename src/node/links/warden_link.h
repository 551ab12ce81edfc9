/* warden_link.h - ask the root daemon, without waiting for it.
 *
 * Any number of requests may be under way; replies come in any order and find theirs by tag. When
 * the connection ends every request fails with ERR_UNAVAILABLE, then on_gone is called once; to
 * open another is the owner's business.
 */
#pragma once

#include "net/timer.h"
#include "net/watch.h"
#include "warden/protocol.h"

enum {
	WARDEN_CALLS_MAX = 1024,   /* requests without a reply yet */
	WARDEN_REPLIES_BATCH = 16, /* taken per turn of the loop */
};

struct warden_link;

struct warden_link_user;
struct warden_link_ops {
	void (*on_gone)(struct warden_link_user *u, const struct err *err); /* the owner closes */
};
struct warden_link_user { /* embedded by the owner */
	const struct warden_link_ops *ops;
};

struct warden_call { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop. A reply with an error code comes as that error. `fds`: those the
	 * reply carried (reply->count of them, for verbs that pass any); the callee takes what it
	 * wants with take_fd(), the rest is closed. */
	void (*on_done)(struct warden_call *c, const struct warden_reply *reply, int *fds,
			size_t n_fds, const struct err *err);
	struct warden_link *link; /* NULL: not under way */
	struct warden_request request;
	int fds[WARDEN_FDS_MAX]; /* to be sent; owned until then */
	size_t n_fds;
	bool sent;
	struct timer deadline;
	struct warden_call *next, **prev;
};

int warden_link_open(struct loop *l, const char *path, struct warden_link_user *u,
		     struct warden_link **ret, struct err *err) NODISCARD;

/* `request` needs no version and no tag. Takes the descriptors in any case. After deadline_ms the
 * call fails with ERR_TIMEOUT; warden may still do what was asked. */
int warden_link_call(struct warden_link *w, struct warden_call *c,
		     const struct warden_request *request, const int *fds, size_t n_fds,
		     uint64_t deadline_ms,
		     void (*on_done)(struct warden_call *c, const struct warden_reply *reply,
				     int *fds, size_t n_fds, const struct err *err),
		     struct err *err) NODISCARD;
void warden_call_cancel(struct warden_call *c); /* on_done will not come; fine when over */

/* End the connection: as if warden had, with all that follows from the loop. */
void warden_link_hang_up(struct warden_link *w);

/* No callback follows, of the link or of its calls. From inside a callback too. NULL is fine. */
void warden_link_close(struct warden_link *w);
