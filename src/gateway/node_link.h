/* node_link.h - ask node, without waiting for it; it may be gone for a while and come back.
 *
 * Requests made while node is gone wait for at most NODE_LINK_WAIT_MS, so that a restart of node is
 * not seen by clients. What was sent when the connection ended waits in the same way and is sent
 * again. What must not be done twice (NODE_CREATE, NODE_FORK, NODE_SNAPSHOT) has a token, by which
 * node knows it again.
 *
 * Each request tells node its deadline. One with a token that ends without its reply, be it late,
 * cancelled or failed, is given up: node hears so (NODE_GIVE_UP), now or when it is back, and what
 * it made for nobody ends.
 */
#pragma once

#include "net/link.h"
#include "node/protocol.h"

enum {
	NODE_CALLS_MAX = 16384,           /* requests without a reply yet */
	NODE_LINK_WAIT_MS = 10000,        /* for node to come back */
	NODE_GIVE_UP_MS = 10 * 60 * 1000, /* for node to come back and hear of it */
	NODE_GIVE_UPS_MAX = 4096,         /* of these under way; more are not told */
	NODE_SENDS_MAX = 4,      /* of one request, each over a connection that then ended */
	NODE_REPLIES_BATCH = 32, /* taken per turn of the loop */
};

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

struct node_link;
int node_link_open(struct loop *l, const char *path, struct node_link_user *u,
		   struct node_link **ret, struct err *err) NODISCARD;
void node_link_close(struct node_link *n); /* no callback follows; NULL is fine */
/* What node said of itself, and whether that fits; all zero: it has said nothing yet. */
const struct link *node_link_state(const struct node_link *n);

/* `text` has at most NODE_TEXT_MAX bytes, of NODE_BUILD_START NODE_FILE_TEXT_MAX.
 * `rq` needs no tag, deadline, token or text_len. Failure (-1): on_done will not come. A reply with
 * an error code comes with that error; when node could not be asked, there is none. */
int node_link_call(struct node_link *n, struct link_call *c, const struct node_request *rq,
		   struct bytes text, uint64_t deadline_ms, link_done_fn *on_done,
		   struct err *err) NODISCARD;

static inline const struct node_reply *node_reply_of(
	const struct link_reply *r) /* NULL: none came */
{
	const void *at = r->head.ptr; /* aligned: a message has memory of its own */

	return at;
}
