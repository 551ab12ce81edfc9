/* hand_over.h - the way to a sandbox's injector: connections to hosts with a rule go there, with
 * both their descriptors, and are no longer ours; so do TLS connections that are refused with a
 * page, with the guest's alone. What comes back says that one is over.
 *
 * The worker at the other end reads what guests and servers send, so its word counts for little:
 * it can end a connection of its own sandbox and say how much went through it.
 */
#pragma once

#include "egress/sandbox_egress.h"
#include "injector/protocol.h"
#include "wire/domain.h"

enum { HAND_OVER_BATCH = 16 }; /* messages of one worker taken per turn */

struct hand_over;

/* Takes fd, a SOCK_SEQPACKET socket, also on failure. */
int hand_over_open(struct hand_over **ret, struct sandbox_egress *o, int fd,
		   struct err *err) NODISCARD;
/* Its worker sees that, and ends with all it was handed. NULL is fine. */
void hand_over_close(struct hand_over *w);

bool hand_over_lives(const struct hand_over *w); /* NULL does not */

struct hand_over_what {
	enum sandbox_egress_kind kind; /* SANDBOX_EGRESS_TLS or SANDBOX_EGRESS_HTTP */
	const char *name;
	uint32_t ip;
	uint16_t port;
	struct bytes first;            /* what the guest has said */
	struct stream *guest, *server; /* taken, also on failure. No server: it is refused */
	const char *why, *fix;         /* then; fix may be NULL */
};

/* Until it is over it is counted in o->n_handed. */
int hand_over_pass(struct hand_over *w, const struct hand_over_what *what,
		   struct err *err) NODISCARD;
