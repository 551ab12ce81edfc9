/* build_log.h - what a build says, line by line, in files.
 *
 *	data_dir/builds/ID/log     one JSON object per line: timestamp, level, message, step?
 *	                   index   of each line a struct build_line
 *
 * The loop writes and reads them: lines are short, a page of them is at most
 * BUILD_PAGE_MAX lines, and both are bounded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum build_level { BUILD_DEBUG, BUILD_INFO, BUILD_WARN, BUILD_ERRORS, BUILD_LEVELS };

enum {
	BUILD_LINES_MAX = 20 * 1000,
	BUILD_LOG_BYTES_MAX = 10 * 1024 * 1024,
	BUILD_MESSAGE_MAX = 4096, /* bytes of one line; the rest of it is cut */
	BUILD_PAGE_MAX = 100,     /* lines of one answer */
};

struct build_log { /* open while its build is under way; -1: closed */
	int text, index;
	uint32_t lines, bytes;
	bool full; /* it was said that more is not kept */
};
#define BUILD_LOG_NONE (struct build_log){ .text = -1, .index = -1 }

/* A new, empty one below `dir`. */
int build_log_open(struct build_log *l, int dir, const char *build_id, struct err *err) NODISCARD;
/* The one that is there, to add to it; or a new one. */
int build_log_reopen(struct build_log *l, int dir, const char *build_id, struct err *err) NODISCARD;
void build_log_close(struct build_log *l);
/* A failure is logged, and ends the log: a build goes on without it. */
void build_log_add(struct build_log *l, enum build_level level, const char *step,
		   struct bytes message);

/* Of one that nobody writes: how much there is of it, and away with it. */
uint64_t build_log_bytes(int dir, const char *build_id);
void build_log_remove(int dir, const char *build_id);

struct build_log_query {
	enum build_level least;
	uint64_t offset;   /* skip so many of those that fit */
	uint64_t after_ms; /* since 1970; those that are later, or at that time */
	bool newest_first;
	size_t limit; /* at most BUILD_PAGE_MAX */
};
/* Appends a JSON array, of as many as fit into `out`. A build without a log has []. */
int build_log_read(int dir, const char *build_id, const struct build_log_query *q, struct buf *out,
		   struct err *err) NODISCARD;
bool build_level_named(struct bytes name, enum build_level *ret);
