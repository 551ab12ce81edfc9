/* signed.h - which sandbox signed a URL that names none: every token is tried.
 *
 * That costs a hash for each sandbox, so it is done SIGNED_SLICE of them at a time, one slice in a
 * turn of the loop whatever number of questions there is, and nobody else waits for it.
 */
#pragma once

#include "node/life/sandbox_table.h"
#include "wire/files_query.h"

enum {
	SIGNED_SLICE = 256,       /* sandboxes tried in one turn of the loop */
	SIGNED_WAITING_MAX = 512, /* questions; more are refused */
};

struct signed_search {
	struct files_query query;
	struct signed_url url; /* borrows from query */
	struct sha256 begun;
	uint64_t after_ns; /* those up to here were tried, in the order of the table */
	char after_id[NODE_ID_MAX + 1];
	struct door_asked *asked;
	struct signed_search *next, **prev;
};

/* From the query of a URL. To be ended in any case. */
int signed_search_begin(struct signed_search *s, struct bytes query, bool writes,
			struct err *err) NODISCARD;
void signed_search_end(struct signed_search *s);

/* Try the next slice. True: over, *ret is the one, or NULL. */
bool signed_search_slice(struct signed_search *s, const struct sandbox_table *t,
			 const struct sandbox **ret);

struct signed_searches { /* of one node, in the order they came */
	struct signed_search *first, **last;
	size_t n;
	struct timer turn;
};

void signed_open(struct node *n);
void signed_close(struct node *n); /* nobody is answered */
verb_fn signed_ask;
