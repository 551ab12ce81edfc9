/* build_query.h - which lines of a build's log are wanted: the query of its status and its logs.
 * Pure.
 */
#pragma once

#include "base/bytes.h"

enum { BUILD_QUERY_LINES_MAX = 100, BUILD_QUERY_LEVEL_SIZE = 8 };

struct build_query {
	uint64_t offset;                    /* so many of those that fit are left out */
	uint64_t after_ms;                  /* since 1970: those from then on; 0: all */
	uint32_t limit;                     /* 1 to BUILD_QUERY_LINES_MAX; or 0: none is wanted */
	bool newest;                        /* first */
	char level[BUILD_QUERY_LEVEL_SIZE]; /* the least; empty: all */
};

/* `logsOffset`, `limit`, `level`. */
int build_query_status(struct bytes query, struct build_query *ret, struct err *err) NODISCARD;
/* `cursor` (milliseconds), `limit`, `level`, `direction`; and `logsOffset`, which is ours. */
int build_query_logs(struct bytes query, struct build_query *ret, struct err *err) NODISCARD;
