/* tunnel.h - a way for the host to services that listen on the loopback of the guest alone.
 *
 *	GET /tunnel HTTP/1.1
 *	Connection: upgrade
 *	Upgrade: hotcell-tunnel
 *	Hotcell-Tunnel-Port: 8080
 *
 * 101: the connection is one to 127.0.0.1:8080, or else [::1]:8080. 502: nobody listens there.
 * It asks for no token: it leads nowhere a program of the guest could not go by itself, and the
 * gateway does not let anybody else ask.
 */
#pragma once

#include "http/request.h"

enum {
	TUNNELS_MAX = 1024,
	TUNNEL_DIAL_MS = 2000, /* for each of the two addresses */
};

#define TUNNEL_PROTOCOL "hotcell-tunnel"

struct tunnel;
struct tunnels { /* all zero: none */
	struct tunnel *first;
	size_t n;
};

void tunnels_done(struct tunnels *t); /* cuts them; those still dialling end with their requests */
