/* ended.h - who asks for a sandbox that is no more is told why, and since when.
 *
 * Tombstones are in the journal. A look-up is done by the journal's thread, and only for an id that
 * this node may have drawn.
 */
#pragma once

#include "node/door/gateway_door.h"
#include "node/journal/journal.h"
#include "net/timer.h"

struct sandbox;
struct ended_search;

enum {
	ENDED_PRUNE_MS = 60 * 1000,
	ENDED_KEEP_MIN_S = 24 * 3600, /* of the setting */
	ENDED_KEEP_MAX_S = 10 * 365 * 24 * 3600,
};

struct ended {
	struct timer prune;
	struct journal_write write;
	struct ended_search *searches;
};

void ended_open(struct node *n);
void ended_begin(struct node *n); /* the journal is open */
void ended_close(struct node *n);

/* In place of door_refuse() where a sandbox was not found: with ERR_NOT_FOUND go, when it was the
 * team's, its id, reason and ended_ns. Any other error is passed on as it is. */
void ended_refuse(struct node *n, struct door_asked *a, const struct node_request *rq,
		  const struct err *err);

/* NODE_ENDED */
verb_fn ended_list;

/* What is written when `s` is gone. False: nobody ever had it. */
bool ended_tombstone(const struct sandbox *s, struct node_tombstone *ret);
