/* resolver.h - addresses of names, remembered for a while.
 *
 * One for all sandboxes, so it knows nothing of rules: who may ask for a name, and which of the
 * addresses may be dialled, is decided by the caller. Who asks for what is being asked already
 * waits for the same answer.
 */
#pragma once

#include "egress/question.h"

enum {
	RESOLVER_NAMES_MAX = 4096,  /* remembered; the oldest goes first */
	RESOLVER_ASKING_MAX = 2048, /* questions under way */
	RESOLVER_OF_ONE_MAX = 64,   /* of them, of one sandbox */
	RESOLVER_TTL_MIN_S = 5,
	RESOLVER_TTL_MAX_S = 300, /* an address that moved is noticed within */
	RESOLVER_NONE_S = 5,      /* that there is none is remembered */
};

struct resolver;
struct asker {         /* embedded by a sandbox; all zero: nothing asked */
	size_t asking; /* questions it began; they go on when it has no use for the answer */
};
struct lookup;
typedef void lookup_done_fn(struct lookup *l, enum dns_reading reading,
			    const struct dns_addresses *found);
struct lookup { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop: DNS_ANSWERED, DNS_NO_NAME or DNS_FAILED. `found` is borrowed, its
	 * ttl_s is what is left of it. */
	lookup_done_fn *on_done;
	struct resolver_name *name;
	struct lookup *next, **prev;
};

int resolver_open(struct resolver **ret, struct loop *l, const struct question_servers *servers,
		  struct err *err) NODISCARD;
void resolver_close(struct resolver *r); /* NULL is fine; nobody may wait any more */

/* `name` is normal. Failure (-1): on_done will not come. */
int resolver_ask(struct resolver *r, struct lookup *l, struct asker *who, const char *name,
		 lookup_done_fn *on_done, struct err *err) NODISCARD;
void lookup_cancel(struct lookup *l);
void resolver_leave(struct resolver *r, struct asker *who); /* it may go, then */
