/* way.h - to a server: straight to its address, or through the operator's HTTP proxy, which is
 * asked to CONNECT to a name or an address.
 */
#pragma once

#include "net/dial.h"
#include "wire/domain.h"

struct way;
typedef void way_done_fn(struct way *w, struct stream *s, struct bytes early,
			 const struct err *err);
struct way { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop: a stream that is now the callee's, or NULL and why. `early`: what
	 * the server said while the proxy still answered; borrowed. */
	way_done_fn *on_done;
	struct dial dial;
	char host[DOMAIN_SIZE]; /* empty: straight */
	uint16_t port;
	uint64_t deadline_ms;
	struct stream *s; /* to the proxy, until it has answered */
	struct stream_user user;
	struct timer late;
	struct buf answer;
	size_t scanned;
};

struct way_to {
	const struct addr *dial; /* the server, or a proxy */
	const char *host;        /* of the proxy: a normal name, or an address; NULL: no proxy */
	uint16_t port;
	uint64_t deadline_ms; /* of each step */
};
/* Failure (-1): on_done will not come. */
int way_start(struct way *w, struct loop *l, const struct way_to *to, way_done_fn *on_done,
	      struct err *err) NODISCARD;

void way_cancel(struct way *w); /* on_done will not come; fine when nothing is under way */
