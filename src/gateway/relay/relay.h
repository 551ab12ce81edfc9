/* relay.h - one request on its way to a port of a sandbox, and the answer on its way back.
 *
 *	SOCKET --> DIAL --> ASKED --> ANSWER --> over
 *	   ^        |         |
 *	   |        v         +-----> SWITCHED --> over
 *	   +------ PAUSE
 *
 * relay.c has the way to the guest and every end, relay_guard.c who may enter, relay_stream.c what
 * flows, relay_head.c which fields are passed on, relay_refuse.c what a client is told when there
 *is no way.
 */
#pragma once

#include "gateway/dispatch.h"
#include "gateway/parse/devtools_urls.h"
#include "gateway/relay/guest_cache.h"
#include "gateway/relay/guest_tunnel.h"
#include "net/dial.h"
#include "net/pump.h"
#include "wire/connect.h"

enum {
	RELAY_TRIES = 5,      /* connections refused, before a port is called closed */
	RELAY_RETRY_MS = 100, /* after the first, twice that after the second: a second in all */
	RELAY_DIAL_MS = 10 * 1000,
	RELAY_WIDE_MAX = 8, /* at once; more have little room in the kernel for what nobody reads */
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
	uint64_t since_ms; /* when it was dialled */
	bool shares;       /* its connection, with requests before and after it */
	bool pooled;       /* the client had other exchanges before */
	struct http_reply reply;
	struct http_exchange *x;        /* NULL: not asked yet, or over */
	bool deaf;                      /* the guest takes no more of the request */
	bool is_connect;                /* its answer is a stream of the Connect protocol, */
	struct envelope_place place;    /* and has come so far */
	struct devtools_urls *devtools; /* NULL: not Chromium's DevTools */
	bool rewrites;                  /* in what is answered, too */
	struct pump pump;               /* SWITCHED */
	struct address_count *counted;  /* the same: of the client's address; may be NULL */
	struct relay *older, *newer;
	struct address_count *of; /* NULL: its client is not counted */
	bool entered;             /* among the relays of the gateway, ordered by */
	uint64_t moved_ms;
};

/* Takes or answers the request: for every plane but PLANE_API. */
void relay_request(struct gateway *g, struct http_request *rq, const struct dispatch *to);

bool relay_is_agent(const struct relay *r); /* the port is that of the agent */
void relay_free(struct relay *r);           /* drops all but rq */
void relay_end(struct relay *r);            /* in whatever state: what was begun is cut off */
void relay_cut(struct relay *r); /* the same; the client is told, so that it asks again */

/* The exchange with the guest failed. Answers, resets or tries again; r may be gone after it. */
void relay_failed(struct relay *r, const struct err *err);
