/* network.h - what egress is told of a sandbox: who it is, and its rules.
 *
 * A slot that is nobody's has a name and no rules, and reaches nobody. Rules are told when it
 * becomes somebody's, when it is resumed, when they change, and whenever egress holds its doors
 * anew. Where egress is gone a sandbox goes on without rules; they follow when it is back.
 */
#pragma once

#include "base/bytes.h"
#include "node/links/egress_client.h"
#include "node/network/network_telling.h"
#include "node/links/injector_client.h"
#include "node/protocol.h"

enum { NETWORK_AGAIN_MS = 1000 }; /* a worker ended by itself: until there is another */

struct sandbox;
struct slots;
struct node;

typedef void network_learned_fn(struct sandbox *s);
typedef void network_rules_fn(struct sandbox *s, const struct err *refused);

struct network { /* of a sandbox; all zero: nothing told */
	struct network_telling telling;
	bool opened;        /* the injector may have a worker for its slot */
	struct timer again; /* there is to be another one */
	/* Who waits until it is told; NULL: nobody */
	network_rules_fn *on_rules;
	struct err refused; /* by egress: its rules make no sense. ERR_NONE: they were not */
	uint64_t changes;   /* of its rules, or of a secret they name */
	struct link_call learn;
	network_learned_fn *on_learned; /* NULL: nobody waits */
	char *known; /* what it knew of names when it was saved last; NULL: nothing */
};

/* All of it, of the slot it has now. */
void network_tell(struct sandbox *s);
/* `on_rules`: at once or from the loop, when nothing is under way. `refused`: ERR_INVALID; a
 * network that is closed for another reason is no failure. */
void network_wait(struct sandbox *s, network_rules_fn *on_rules);
void network_cancel(struct sandbox *s); /* also who waits */
void network_done(struct sandbox *s);

/* Its rules as egress reads them, of that text of a create; appended. */
int network_rules(const struct sandbox *s, const char *text, struct buf *out,
		  struct err *err) NODISCARD;
/* The same of a sandbox of `base` that has none of its own. */
int network_rules_none(const struct node *n, struct buf *out, struct err *err) NODISCARD;
/* ERR_INVALID: it has rules of headers, and there is no injector. */
int network_allow(const struct node *n, const char *text, struct err *err) NODISCARD;

/* Its rules again, not its name: the ones it had were lost, or are to be as they were. */
void network_retell(struct sandbox *s);
void network_close_opened(struct sandbox *s); /* its worker, if any; also before its slot goes */
/* It stands still: what it knows of names is asked for and kept in s->network.known, so that
 * whoever goes on from here knows it, too. `on_learned`, if any, comes once, from the loop, if it
 * is under way after the call; what was known before stays when egress does not say. */
void network_learn(struct sandbox *s, network_learned_fn *on_learned);
bool network_learns(const struct sandbox *s);

/* For slots.h: whoever uses it is told of again. */
void network_reopened(struct slots *slots, uint32_t slot);
/* For injector_client.h. */
void network_injector_up(struct injector_client *k);
void network_worker_gone(struct injector_client *k, uint32_t slot);
