/* gateway.h - the public door: what every request of it shares.
 *
 *	on_request -> dispatch: which plane? -> api_request()    the control plane
 *	                                     -> relay_request()  a port of a sandbox
 */
#pragma once

#include "gateway/node_link.h"
#include "gateway/relay/address_rates.h"
#include "gateway/relay/relays.h"
#include "http/server.h"

struct api;         /* routes, keys, teams */
struct guest_cache; /* what is known of sandboxes that have traffic */
struct tls_context;

/* Descriptors that guest_cache keeps for later, besides the two of each relayed connection. */
enum { GATEWAY_HELD_MAX = 4096 };

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
