/* idempotency.h - a create that comes again under the same name gets the same sandbox.
 *
 * Who was not told whether its create was done may ask again: while the first is under way the
 * second waits for it, later it gets the sandbox that was made, as long as that lives, for a day.
 * The name is in the sandbox's row, so it outlives node; there are never more of them than there
 * are sandboxes and creates that wait.
 */
#pragma once

#include "base/bytes.h"
#include "node/door/gateway_door.h"
#include "node/journal/journal.h"

struct node;
struct create;
struct sandbox;
struct repeat;

enum {
	IDEMPOTENCY_BUCKETS = 1024,
	REPEAT_KEEP_S = 24 * 3600,
	REPEAT_WAITS_MAX = 64, /* for one create; more are refused: ERR_EXHAUSTED */
};

struct idempotency { /* all zero: none */
	struct repeat *buckets[IDEMPOTENCY_BUCKETS];
};

/* NODE_CREATE with a name. True: it was answered, or will be. False: it is the first. */
bool idempotency_take(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text);
/* The first one: others wait for it from now on. */
int idempotency_begin(struct node *n, struct create *c, const struct node_request *rq,
		      struct bytes text, struct err *err) NODISCARD;
void idempotency_done(struct create *c, struct sandbox *s); /* it runs: who waited is answered */
void idempotency_failed(struct create *c, const struct err *why); /* who waited is told */

bool idempotency_awaited(const struct create *c); /* others wait for it, too */
void idempotency_forget(struct sandbox *s);       /* it ends: the name is free */
void idempotency_close(struct node *n);           /* who waits is forgotten */

/* Into and from its row. */
void idempotency_note(const struct sandbox *s, struct journal_row *row);
int idempotency_load(struct sandbox *s, const struct journal_row *row, struct err *err) NODISCARD;

/* Equal for equal requests. */
uint64_t idempotency_print(const struct node_request *rq, struct bytes text);
