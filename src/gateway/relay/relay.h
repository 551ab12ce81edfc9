/* relay.h - one request on its way to a port of a sandbox, and the answer on its way back.
 *
 *	SOCKET --> DIAL --> ASKED --> ANSWER --> over
 *	   ^        |         |
 *	   |        v         +-----> SWITCHED --> over
 *	   +------ PAUSE
 *
 * relay.c has the way to the guest and every end, relay_stream.c what flows, relay_head.c which
 * fields are passed on, relay_refuse.c what a client is told when there is no way.
 */
#pragma once

#include "gateway/relay/guest_cache.h"
#include "gateway/relay/guest_tunnel.h"
#include "gateway/relay/relay_refuse.h"
#include "net/dial.h"
#include "net/pump.h"

enum {
	RELAY_TRIES = 5,      /* connections refused, before a port is called closed */
	RELAY_RETRY_MS = 100, /* after the first, twice that after the second: a second in all */
	RELAY_DIAL_MS = 10 * 1000,
	RELAY_PEER_MAX = 64,
	RELAY_REST_MS = 60 * 1000, /* nothing moved: it may be ended, if others need its place */
};

enum relay_state {
	RELAY_SOCKET, /* waits for a socket */
	RELAY_DIAL,   /* connects, straight or through the agent */
	RELAY_PAUSE,  /* refused; will try again */
	RELAY_ASKED,  /* the request leaves, nothing was answered */
	RELAY_ANSWER, /* the head of the answer was passed on */
	RELAY_SWITCHED,
};

struct relay {
	struct gateway *g;
	struct dispatch to;
	enum relay_state state;
	struct http_handler handler; /* of rq */
	struct http_request *rq;     /* NULL: switched */
	struct guest_user user;
	struct dial dial;
	struct guest_tunnel tunnel;
	bool by_tunnel; /* refused from outside: this try goes through the agent */
	struct timer retry;
	unsigned int tries;
	struct http_client *client;
	bool pooled; /* the client had other exchanges before */
	struct http_reply reply;
	struct http_exchange *x; /* NULL: not asked yet, or over */
	bool deaf;               /* the guest takes no more of the request */
	struct pump pump;        /* SWITCHED */
	struct relay *older, *newer;
	bool entered; /* among the relays of the gateway, ordered by */
	uint64_t moved_ms;
};

/* relay.c */
bool relay_is_agent(const struct relay *r); /* the port is that of the agent */
void relay_free(struct relay *r);           /* drops all but rq */
void relay_end(struct relay *r);            /* in whatever state: what was begun is cut off */

/* The exchange with the guest failed. Answers, resets or tries again; r may be gone after it. */
void relay_failed(struct relay *r, const struct err *err);

/* relay_rest.c */
void relay_enter(struct relay *r);
void relay_leave(struct relay *r);
void relay_moved(struct relay *r); /* bytes, in either direction */

/* relay_stream.c: send the request over r->client and let both bodies flow. */
int relay_ask(struct relay *r, struct err *err) NODISCARD;
extern const struct http_handler_ops relay_handler_ops;

/* relay_head.c: fields that came, without those of one connection, and a few of ours. They borrow
 * from the head and from this struct. */
struct relay_fields {
	struct http1_field at[HTTP_FIELDS_OUT_MAX];
	size_t n;
	char peer[RELAY_PEER_MAX];
	char host[INGRESS_HOST_MAX + 1];
};
struct bytes relay_host(const struct relay *r, struct relay_fields *f); /* what the guest is told */
void relay_request_fields(const struct http_request *rq, struct relay_fields *ret);
void relay_answer_fields(const struct relay *r, const struct http1_head *head,
			 struct relay_fields *ret);
/* The target as a guest expects it, in *room when it had to be written anew. */
int relay_target(const struct http1_head *head, struct buf *room, struct bytes *ret,
		 struct err *err) NODISCARD;
