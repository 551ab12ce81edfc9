/* record_query.h - the queries of metrics and logs: of which time, how much. Pure.
 *
 * Bounds are as node takes them: those of logs are exclusive; 0 is none.
 */
#pragma once

#include "node/protocol.h"
#include "wire/json.h"

enum {
	RECORD_LIMIT_MAX = 1000,
	RECORD_SEARCH_MAX = 256,
	RECORD_IDS_MAX = 100, /* of GET /sandboxes/metrics */
};

enum record_level { RECORD_DEBUG, RECORD_INFO, RECORD_WARN, RECORD_ERROR, RECORD_LEVELS };

struct record_query {
	uint64_t after_ns, until_ns;
	uint32_t limit;
	bool newest;                        /* first */
	enum record_level level;            /* at least */
	char search[RECORD_SEARCH_MAX + 1]; /* in the message; empty: any */
};

/* `start` and `end`: seconds since 1970, both inclusive. */
int record_query_metrics(struct bytes query, struct record_query *ret, struct err *err) NODISCARD;
/* `start`: milliseconds, inclusive; `limit`. */
int record_query_logs_v1(struct bytes query, struct record_query *ret, struct err *err) NODISCARD;
/* `cursor`: milliseconds; `direction`, `limit`, `level`, `search`. */
int record_query_logs_v2(struct bytes query, struct record_query *ret, struct err *err) NODISCARD;

/* The parameter `sandbox_ids`: names with commas between them, appended to *out as they are. */
int record_query_ids(struct bytes query, struct buf *out, struct err *err) NODISCARD;

/* An entry's level; what is unknown is RECORD_INFO. */
enum record_level record_level_of(const json_t *entry);
bool record_query_matches(const struct record_query *q, const json_t *entry);
