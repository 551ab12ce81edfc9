/* gateway.h - the public door: what every request of it shares.
 *
 *	on_request -> dispatch: which plane? -> api_request()    the control plane
 *	                                     -> relay_request()  a port of a sandbox
 */
#pragma once

#include "gateway/figures.h"
#include "gateway/node_link.h"
#include "gateway/parse/sandbox_domain.h"
#include "gateway/relay/address_rates.h"
#include "gateway/relay/relays.h"
#include "http/server.h"
#include "wire/json.h"

struct api;         /* routes, keys, teams */
struct guest_cache; /* what is known of sandboxes that have traffic */
struct peers;       /* other gateways */
struct arrivals;    /* clients that come over TLS */
struct tls_context;

/* Descriptors that guest_cache keeps for later, besides the two of each relayed connection. */
enum { GATEWAY_HELD_MAX = 4096 };

struct gateway {
	struct loop *loop;
	struct node_link *node;
	struct api *api;
	struct guest_cache *guests;
	struct peers *peers;              /* NULL: there are none, as in tests */
	struct tls_context *guest_tls;    /* for ports that speak TLS: anybody's certificate */
	char domain[SANDBOX_DOMAIN_SIZE]; /* of sandboxes' host names; empty: none configured */
	struct arrivals *arrivals;        /* NULL: TLS is not spoken */
	json_t *(*arrivals_status)(const struct arrivals *a);
	struct relays relays;
	struct figures figures;
	struct address_rates signed_rates; /* of URLs that name no sandbox */
};
