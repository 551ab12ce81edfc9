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

/* Failure (-1): on_done will not come. Each step has deadline_ms. */
int way_start(struct way *w, struct loop *l, const struct addr *to, uint64_t deadline_ms,
	      way_done_fn *on_done, struct err *err) NODISCARD;
/* `host`: a normal name, or an address. */
int way_start_via(struct way *w, struct loop *l, const struct addr *proxy, const char *host,
		  uint16_t port, uint64_t deadline_ms, way_done_fn *on_done,
		  struct err *err) NODISCARD;

void way_cancel(struct way *w); /* on_done will not come; fine when nothing is under way */
