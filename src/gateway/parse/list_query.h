/* list_query.h - the query of GET /v2/sandboxes: which sandboxes, in which order, how many. Pure.
 *
 * The token of a next page is base64url of `<RFC 3339>__<id>[__asc]`: where the last page ended.
 */
#pragma once

#include "node/protocol.h"
#include "wire/json.h"

enum {
	LIST_LIMIT_MAX = 100,
	LIST_METADATA_MAX = 8 * 1024, /* the filter, as sent */
	LIST_PAIRS_MAX = 64,
	LIST_TOKEN_MAX = 512,
};

struct list_pair { /* borrow from list_query.decoded */
	struct bytes key, value;
};

struct list_query { /* never copied: pairs borrow */
	bool running, paused;
	bool ascending;
	bool usage;                        /* an operator's: what each used last */
	uint64_t started_after_ns;         /* inclusive */
	char template_id[NODE_ID_MAX + 1]; /* or alias; empty: any */
	uint32_t limit;
	bool has_cursor;
	uint64_t cursor_ns;
	char cursor_id[NODE_ID_MAX + 1];
	size_t n_pairs;
	struct list_pair pairs[LIST_PAIRS_MAX];
	struct buf decoded;
};

/* `limit` is the largest allowed and the default. On success the caller owns what is in *ret. */
int list_query_parse(struct bytes query, uint32_t limit, struct list_query *ret,
		     struct err *err) NODISCARD;
void list_query_done(struct list_query *q);

/* Does it match, the page aside? `metadata` may be NULL. */
bool list_query_matches(const struct list_query *q, const struct node_sandbox *s,
			const json_t *metadata);
/* Does it come after the page before this one? */
bool list_query_follows(const struct list_query *q, const struct node_sandbox *s);

/* The token that continues after `s`. */
int list_token_put(struct buf *out, const struct node_sandbox *s, bool ascending,
		   struct err *err) NODISCARD;
