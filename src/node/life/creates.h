/* creates.h - who waits for a sandbox, and the sandboxes that wait for them.
 *
 * Keys take turns: a key's second create waits for a round of the others' first. Within a key the
 * order is that of arrival.
 *
 * Each start of `base` gives a sandbox that is nobody's yet; when it is ready, the first in the
 * queue gets it, or the pool when nobody waits. A create of a snapshot gets a VM of that snapshot's
 * pool, or one is begun for it. Starts are begun as long as fewer are under way than there are
 * waiting, at most starts_max at once; pools (pools.h) are filled when nobody waits.
 */
#pragma once

#include "base/bytes.h"
#include "node/life/sandbox.h"
#include "wire/json.h"

enum {
	CREATES_MAX = 4096,             /* waiting at once */
	CREATES_KEY_MAX = 1024,         /* of one key */
	CREATES_SERVED_MAX = 256,       /* keys in a round */
	CREATE_RETRY_S = 5,             /* worth another try: this host was full */
	CREATES_PER_S = 20,             /* a guess, for how long a full queue takes */
	CREATE_TRIES_MAX = 2,           /* starts that may fail before the create does */
	CREATE_WAIT_MS = 5 * 60 * 1000, /* in the queue, whatever the reason */
	CREATE_LINK_MS = 10 * 1000,     /* while warden or egress is gone */
	CREATE_POOL_REST_MS = 2 * 1000, /* after a start for the pool failed */
};

struct builder;

struct create {
	struct node *node;
	struct door_asked *asked;
	char team[NODE_ID_MAX + 1], key_id[NODE_ID_MAX + 1];
	char token[NODE_ID_MAX + 1];        /* of the request, see once.h; may be empty */
	char request[NODE_REQUEST_MAX + 1]; /* its name in logs; may be empty */
	uint32_t timeout_s, flags;
	struct repeat *repeat;        /* idempotency.h; NULL: it has no name */
	struct snapshot *snapshot;    /* held; what it wants a copy of; NULL: of the template */
	char ground[NODE_ID_MAX + 1]; /* without one: a template by its id; "": `base` */
	uint32_t vcpus, memory_mib;   /* with NODE_BOOT: its own; both 0: those of what it is of */
	struct pool *pool;            /* where it may find a VM; NULL: one is begun for it alone */
	struct fork *fork;            /* who is told; NULL: `asked` */
	struct builder *builder;      /* or that one */
	size_t fork_at;
	json_t *env;
	char *text;
	unsigned int tries;
	bool limited; /* refused for what its key has already */
	uint64_t since_ms;
	struct timer patience;
	uint64_t round;              /* of the queue */
	struct create *next, **prev; /* prev NULL: not in the queue */
	struct create *all_next, **all_prev;
};

struct creates {
	struct create *first;
	size_t n;
	size_t held_up; /* at the last turn: those that wait for what no start brings, refreeze.h */
	uint64_t round; /* of who was taken last */
	uint32_t served[CREATES_SERVED_MAX]; /* hashes of keys, in this round */
	size_t n_served;
	struct create *all; /* waiting or being done */
	size_t claimed;     /* creates that have a sandbox and are not answered yet; of these, */
	size_t bound;       /* those whose sandbox was begun for them and is not ready yet */
	struct timer turn;
	uint64_t pool_rests_until_ms;
};

/* Those that something can be started for: for as long as there is one, nothing else matters. */
static inline size_t creates_pressing(const struct creates *q)
{
	return q->n > q->held_up ? q->n - q->held_up : 0;
}

/* Its sandbox is begun for it alone: none of the pool will do. */
static inline bool create_is_own(const struct create *c)
{
	return c->snapshot || c->builder || c->vcpus;
}

void creates_open(struct node *n);
void creates_close(struct node *n); /* forgets those who wait */

void creates_ask(struct node *n, struct door_asked *asked, const struct node_request *rq,
		 struct bytes text);
struct create_copy { /* one of a fork's; borrowed for the call */
	struct fork *fork;
	size_t at;
	struct snapshot *snapshot;
	const struct node_request *request;
	uint32_t flags;
	const char *text, *env; /* may be NULL */
};
void creates_fork(struct node *n, const struct create_copy *of);
struct builder_spec;
/* NULL: *err. Else the builder is told, and the create is its to give up until then. */
struct create *creates_build(struct node *n, struct builder *b, const struct builder_spec *spec,
			     struct err *err) NODISCARD;
void creates_give_up(struct create *c); /* and the sandbox that is on its way; nobody is told */
void creates_soon(struct node *n);      /* something changed: see what can be done, from the loop */
void creates_refuse_all(struct node *n, const struct err *why);
void creates_drop_unwanted(struct node *n); /* those that wait, and nobody for them */

void creates_bound_ready(struct sandbox *s); /* one begun for its create has come to WAITING */
/* It failed before it ran. Who was to have it waits again, or is told. */
void creates_failed(struct sandbox *s, const struct err *why);
/* It runs: the answer. Takes the create. */
void creates_done(struct sandbox *s);
