/* once.h - a create, a fork or a snapshot is done once, and for somebody.
 *
 * The gateway gives each a token, and sends it again when the connection ended before the answer.
 * While the first is under way the second waits for it; later what the first made is found by its
 * row, by the next node, too.
 *
 * It is for somebody until its deadline, and while its gateway is there or was lost less than
 * ONCE_LOST_MS ago; or until the gateway gives it up. Then it is not begun any more, and what it
 * made, of which nobody was told, ends as soon as it is there. What has a name may be asked for
 * again, and stays: a create with an idempotency key, a snapshot with a name.
 */
#pragma once

#include "base/bytes.h"
#include "node/door/gateway_door.h"

struct once;

enum {
	ONCE_BUCKETS = 1024,
	ONCE_LOST_MS = 15 * 1000, /* longer than a gateway looks for node, NODE_LINK_WAIT_MS */
	ONCE_WAITS_MAX = 8,       /* sent again and waiting, for one; more are ERR_EXHAUSTED */
};

struct onces {
	struct once *buckets[ONCE_BUCKETS];
	uint64_t lost_ms; /* ONCE_LOST_MS; a test has less time */
};

void once_open(struct node *n);
void once_close(struct node *n); /* after the door */

/* A request that came just now. True: it was answered, or will be. False: begin it. */
bool once_take(struct node *n, struct door_asked *a, const struct node_request *rq);
/* Does anybody wait for it, and is there time? Else it is refused. */
bool once_wanted(struct door_asked *a, const struct node_request *rq);
/* NODE_GIVE_UP */
verb_fn once_give_up_ask;
