/* node_link.h - ask node, without waiting for it; it may be gone for a while and come back.
 *
 * Any number of requests may be under way; replies find theirs by tag. The link connects again by
 * itself, and requests made meanwhile wait for at most NODE_LINK_WAIT_MS, so that a restart of
 * node is not seen by clients. What was sent when the connection ended waits in the same way and is
 * sent again. What must not be done twice (NODE_CREATE, NODE_FORK, NODE_SNAPSHOT) has a token, by
 * which node knows it again.
 *
 * Each request tells node its deadline. One with a token that ends without its reply, be it late,
 * cancelled or failed, is given up: node hears so (NODE_GIVE_UP), now or when it is back, and what
 * it made for nobody ends.
 */
#pragma once

#include "base/bytes.h"
#include "net/timer.h"
#include "net/watch.h"
#include "node/protocol.h"

enum {
	NODE_CALLS_MAX = 16384,    /* requests without a reply yet */
	NODE_LINK_WAIT_MS = 10000, /* for node to come back */
	NODE_LINK_RETRY_MS = 100,
	NODE_GIVE_UP_MS = 10 * 60 * 1000, /* for node to come back and hear of it */
	NODE_GIVE_UPS_MAX = 4096,         /* of these under way; more are not told */
	NODE_SENDS_MAX = 4,      /* of one request, each over a connection that then ended */
	NODE_REPLIES_BATCH = 32, /* taken per turn of the loop */
};

struct node_link;
struct node_link_user;
struct node_link_ops {
	void (*on_gone)(struct node_link_user *u, const char *id, uint32_t generation);
	/* The connection was lost: events may have been missed until on_up. */
	void (*on_down)(struct node_link_user *u);
	void (*on_up)(struct node_link_user *u); /* the first time too */
};
struct node_link_user { /* embedded by the owner */
	const struct node_link_ops *ops;
};

struct node_call { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop. A reply with an error code comes with that error; when node could
	 * not be asked, reply is NULL. `after`: the text or the entries behind the reply, borrowed.
	 * The callee takes what it wants of the descriptors with take_fd(), the rest is closed. */
	void (*on_done)(struct node_call *c, const struct node_reply *reply, struct bytes after,
			int *fds, size_t n_fds, const struct err *err);
	struct node_link *link; /* NULL: not under way */
	uint64_t tag;
	struct timer deadline;
	uint64_t until_ms;  /* of the loop's clock: the deadline */
	struct buf message; /* as long as it may have to be sent */
	unsigned int n_sends;
	bool patient;                /* it waits for node until its deadline */
	char token[NODE_ID_MAX + 1]; /* as in the request; empty: none, or it was answered */
	struct node_call *next, **prev;
};

int node_link_open(struct loop *l, const char *path, struct node_link_user *u,
		   struct node_link **ret, struct err *err) NODISCARD;
void node_link_close(struct node_link *n); /* no callback follows; NULL is fine */

/* `rq` needs no version, tag or text_len. Failure (-1): on_done will not come. */
int node_link_call(struct node_link *n, struct node_call *c, const struct node_request *rq,
		   struct bytes text, uint64_t deadline_ms,
		   void (*on_done)(struct node_call *c, const struct node_reply *reply,
				   struct bytes after, int *fds, size_t n_fds,
				   const struct err *err),
		   struct err *err) NODISCARD;
void node_call_cancel(struct node_call *c); /* on_done will not come; fine when over */
