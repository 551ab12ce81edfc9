/* crowd.h - who gives way when nearly all of connections_max are taken.
 *
 *	| streams into sandboxes, at most              | reserve |
 *	| connections that wait for their client, at most   |    |
 *
 * The reserve is a part of the connections that relayed requests cannot take: the API is reached.
 * In the second half of it, connections that wait for their client are given up for newcomers, the
 * longest first, unless they have just come and were not answered yet; then relayed requests in
 * which nothing moved for RELAY_REST_MS.
 */
#pragma once

#include "gateway/gateway.h"
#include "net/listen.h"

enum {
	CROWD_RESERVE = 16,       /* one of so many connections is the API's */
	CROWD_GRACE_MS = 100,     /* for a client that has just come to say what it wants */
	CROWD_LOOK_MS = 100,      /* how often to look again, when nobody could give way */
	CROWD_SAY_MS = 60 * 1000, /* how often it is logged */
	CROWD_DOORS_MAX = 16,
};

struct crowd { /* embedded by its owner */
	struct gateway *g;
	struct listener *doors[CROWD_DOORS_MAX];
	size_t n_doors;
	struct http_server *http;
	size_t connections_max;
	struct timer again;
	uint64_t said_ms;
};

/* The limits are set. `door` and `http` outlive it. */
void crowd_open(struct crowd *c, struct gateway *g, struct listener *door,
		struct http_server *http);
void crowd_close(struct crowd *c); /* fine when it is all zero */

void crowd_add(struct crowd *c, struct listener *door); /* one more; it outlives it, too */
bool crowd_is_full(const struct crowd *c); /* the doors together have let in more than may be */

/* Somebody came: before he is counted among those who wait. */
void crowd_look(struct crowd *c);

/* One more of its address than may be: is told so, while there is room for that. Takes the stream.
 */
void crowd_refuse(struct crowd *c, struct stream *s);
