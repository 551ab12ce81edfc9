/* gateway.h - the public door: what every request of it shares.
 *
 *	on_request -> dispatch: which plane? -> api_request()    the control plane
 *	                                     -> relay_request()  a port of a sandbox
 */
#pragma once

#include "gateway/relay/address_rates.h"
#include "gateway/node_link.h"
#include "http/server.h"

struct api;         /* routes, keys, teams */
struct guest_cache; /* what is known of sandboxes that have traffic */
struct tls_context;
struct relay;

/* Descriptors that guest_cache keeps for later, besides the two of each relayed connection. */
enum { GATEWAY_HELD_MAX = 4096 };

/* The relayed requests, see relay_rest.c. */
struct relays {
	struct relay *oldest, *newest; /* by when something last moved in them */
	size_t n, max;                 /* max 0: any number */
};

struct gateway {
	struct loop *loop;
	struct node_link *node;
	struct api *api;
	struct guest_cache *guests;
	struct tls_context *guest_tls; /* for ports that speak TLS: anybody's certificate */
	char domain[256];              /* of sandboxes' host names; empty: none configured */
	struct relays relays;
	struct address_rates signed_rates; /* of URLs that name no sandbox */
};

/* What a request is for. */
enum plane {
	PLANE_API,
	PLANE_SANDBOX, /* id and port below */
	PLANE_SIGNED,  /* /files with a signature and no sandbox named; never with a domain */
	PLANE_BAD,     /* answered with 400 and `message`, as text/plain */
};
struct dispatch {
	enum plane plane;
	char id[NODE_ID_MAX + 1];
	uint16_t port;
	const char *message; /* a literal */
	/* Of the sandbox whose signature was seen: it resumes it, and goes nowhere else */
	char wake_token[NODE_ID_MAX + 1];
};

/* dispatch.c: by headers or by host name; see docs of the E2B wire, B.3 and B.4. */
void dispatch_find(const struct http1_head *head, const char *domain, struct dispatch *ret);

/* Each takes or answers the request. */
void api_request(struct gateway *g, struct http_request *rq);
/* every plane but PLANE_API */
void relay_request(struct gateway *g, struct http_request *rq, const struct dispatch *to);
/* Ends the one in which nothing moved for the longest, if that is RELAY_REST_MS. False: none. */
bool relay_shed(struct gateway *g);
/* signed_files.c: no sandbox is named; or one that is paused, and only a token resumes it. False:
 * nothing is signed, and the request is still the caller's. */
void signed_request(struct gateway *g, struct http_request *rq);
bool signed_wake(struct gateway *g, struct http_request *rq, const struct dispatch *to);

/* relay's memory of sandboxes, told by node_link's events */
int guest_cache_open(struct gateway *g, struct err *err) NODISCARD;
void guest_cache_close(struct guest_cache *c); /* ends every relayed stream; NULL is fine */
void guest_cache_gone(struct guest_cache *c, const char *id, uint32_t generation);
void guest_cache_forget(struct guest_cache *c); /* events were missed: verify before use again */
