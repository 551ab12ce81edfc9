/* quarantine.h - rows of the journal that this node can make no sense of.
 *
 * They stay in their tables as they are, and are judged again at every start: by a later version,
 * or once an operator has mended them, they are loaded like any other. Until then their ids are
 * known: no folder of theirs is swept, no VM of theirs is stopped, and what they were made of is
 * kept.
 */
#pragma once

#include "node/journal/journal.h"
#include "wire/json.h"

enum {
	QUARANTINE_BUCKETS = 1024,
	QUARANTINE_TOLD = 64, /* of a status; of more than so many only how many there are */
	QUARANTINE_WHY_MAX = 128,
};

enum quarantine_kind { QUARANTINE_SANDBOX, QUARANTINE_SNAPSHOT, QUARANTINE_KINDS };

struct quarantine {
	struct quarantined *buckets[QUARANTINE_BUCKETS];
	size_t n;
	bool blind; /* there was no memory for one: every id counts as known */
};

struct node;
struct node_request;
struct sandbox;

void quarantine_add(struct node *n, enum quarantine_kind kind, const struct journal_odd *row);
void quarantine_close(struct node *n);

bool quarantine_has(const struct node *n, enum quarantine_kind kind, const char *id);
bool quarantine_needs(const struct node *n,
		      const char *base_id); /* is any made on this template? */
/* Who may know of the sandbox that is asked for is told why it cannot be had: *err, and true. */
bool quarantine_tells(const struct node *n, const struct node_request *rq, struct err *err);
/* An operator gives a sandbox up: it is in the table and may be ended. NULL: there is no such, or
 * *err says why not. */
struct sandbox *quarantine_give_up(struct node *n, const char *id, struct err *err);
json_t *quarantine_json(const struct node *n); /* [{"id", "kind", "why"}]; NULL: no memory */
