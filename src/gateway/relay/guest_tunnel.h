/* guest_tunnel.h - the way to a service that listens on the guest's loopback alone.
 *
 * From outside nothing of 127.0.0.1 or ::1 in the guest can be reached. The agent is inside: asked
 * for a tunnel to a port, it makes of that connection one to the service.
 */
#pragma once

#include "http/client.h"
#include "net/dial.h"

enum { GUEST_TUNNEL_MS = 10 * 1000 }; /* to reach the agent, and again for its answer */

struct guest_tunnel;
typedef void guest_tunnel_done_fn(struct guest_tunnel *t, struct stream *s, struct buf *early,
				  const struct err *err);
struct guest_tunnel { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop: a stream that is now the callee's, and what the service said at
	 * once; or NULL and why: sys is ECONNREFUSED when nobody listens. */
	guest_tunnel_done_fn *on_done;
	uint16_t port;
	struct dial dial;
	struct http_client *client;
	struct http_reply reply;
	struct http_exchange *x;
};

/* `fd`: an unconnected socket in the guest's network, taken in any case. Failure (-1): on_done will
 * not come. */
struct guest_tunnel_to {
	int fd;
	const struct addr *agent;
	uint16_t port;
};
int guest_tunnel_start(struct guest_tunnel *t, struct loop *l, const struct guest_tunnel_to *to,
		       guest_tunnel_done_fn *on_done, struct err *err) NODISCARD;
void guest_tunnel_cancel(struct guest_tunnel *t); /* fine when nothing is under way */
