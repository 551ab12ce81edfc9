/* creates.h - who waits for a sandbox, in the order they came, and the sandboxes that wait for
 * them.
 *
 * Each start gives a sandbox that is nobody's yet; when it is ready, the first in the queue gets
 * it, or the pool when nobody waits. Starts are begun as long as fewer are under way than there
 * are waiting, at most starts_max at once; the pool is filled when nobody waits.
 */
#pragma once

#include "base/bytes.h"
#include "node/sandbox.h"
#include "wire/json.h"

enum {
	CREATES_MAX = 4096,             /* waiting at once */
	CREATE_TRIES_MAX = 2,           /* starts that may fail before the create does */
	CREATE_WAIT_MS = 5 * 60 * 1000, /* in the queue, whatever the reason */
	CREATE_LINK_MS = 10 * 1000,     /* while warden or egress is gone */
	CREATE_POOL_REST_MS = 2 * 1000, /* after a start for the pool failed */
};

struct create {
	struct node *node;
	struct door_asked *asked;
	char team[NODE_ID_MAX + 1];
	uint32_t timeout_s, flags;
	json_t *env;
	char *text;
	unsigned int tries;
	uint64_t since_ms;
	struct timer patience;
	struct create *next, **prev; /* prev NULL: not in the queue */
};

struct creates {
	struct create *first, **last;
	size_t n;
	struct sandbox *ready, **ready_last; /* the pool: those WAITING, the oldest first */
	size_t claimed; /* creates that have a sandbox and are not answered yet */
	struct timer turn;
	uint64_t pool_rests_until_ms;
};

void creates_open(struct node *n);
void creates_close(struct node *n); /* forgets those who wait */

void creates_ask(struct node *n, struct door_asked *asked, const struct node_request *rq,
		 struct bytes text);
void creates_soon(struct node *n); /* something changed: see what can be done, from the loop */
/* Could one more be resumed now? */
int creates_room(const struct node *n, struct err *err) NODISCARD;
void creates_refuse_all(struct node *n, const struct err *why);

void creates_ready(struct sandbox *s);   /* it has come to WAITING */
void creates_unready(struct sandbox *s); /* it was WAITING and is no more */
/* It failed before it ran. Who was to have it waits again, or is told. */
void creates_failed(struct sandbox *s, const struct err *why);
/* It runs: the answer. Takes the create. */
void creates_done(struct sandbox *s);
