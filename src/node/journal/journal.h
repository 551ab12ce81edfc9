/* journal.h - what node knows of its sandboxes, on disk before it is so in the world.
 *
 * SQLite in WAL mode, on a thread of its own. Writes are done in the order they were asked for and
 * survive the death of any process. What was promised as durable is synced, too.
 */
#pragma once

#include <stdbool.h>

#include "net/loop.h"
#include "node/protocol.h"

enum journal_state {
	JOURNAL_CREATING, /* resources may or may not exist */
	JOURNAL_POOLED,   /* restored and waiting for somebody */
	JOURNAL_RUNNING,
	JOURNAL_KILLING, /* to be gone */
	JOURNAL_PAUSED,  /* no VM; all of it is on disk */
	JOURNAL_WAKING,  /* durable before a resumed guest runs: its saved memory is of no use any
			    more */
	JOURNAL_STATES,
};

struct journal_row {
	struct node_sandbox sandbox; /* id is the key, and warden's name for its VM */
	char control_token[NODE_ID_MAX + 1];
	char machine_id[NODE_ID_MAX + 1], boot_id[NODE_ID_MAX + 1]; /* it keeps them when resumed */
	char key_id[NODE_ID_MAX + 1];  /* by whose key it was made; may be empty */
	uint32_t pages_crc, state_crc; /* JOURNAL_PAUSED with memory: of its files */
	uint32_t disk_crc;    /* JOURNAL_PAUSED alone: of its disk; 0: not known, files_disk.c */
	uint64_t saved_bytes; /* JOURNAL_PAUSED: 0 when the disk alone was kept */
	/* When this run began and is to end, in CLOCK_BOOTTIME: a VM does not survive a boot, and
	 * the wall clock may jump. 0: not known, of a row of schema 1 */
	uint64_t run_boot_ns, end_boot_ns;
	char token[NODE_ID_MAX + 1], idempotency[NODE_ID_MAX + 1]; /* of the request for it */
	uint64_t request_print;        /* and what that create asked for */
	char base_id[NODE_ID_MAX + 1]; /* the template below the snapshot it was made of, which
					* is sandbox.template_id; empty: no snapshot */
	uint64_t base_sums; /* manifest_sums() of what it was made of, template or snapshot; 0: not
			     * known, of a row of schema 4 */
	uint32_t blank;     /* 1: its memory was mapped from zeros, not from what it was made of */
	enum journal_state state;
	uint32_t slot;
	char *text;  /* JSON, NUL-terminated; may be NULL. Borrowed by calls, see each */
	char *known; /* which names it knew addresses of when it paused, the same */
};

enum {
	JOURNAL_QUEUE_MAX = 16384,   /* writes under way; more are refused: ERR_EXHAUSTED */
	JOURNAL_SEARCHES_MAX = 1024, /* and searches, which must not keep writes away */
	TOMBSTONES_MAX = 100 * 1000, /* the oldest are dropped */
	TOMBSTONES_PAGE = 256,       /* of one list */
	TOMBSTONES_SLICE = 1024,     /* pruned at once */
};

struct journal;
struct journal_job;
struct journal_write;
/* Once, from the loop. */
typedef void journal_done_fn(struct journal_write *w, const struct err *err);
struct journal_write { /* embedded by the caller; all zero: nothing under way */
	journal_done_fn *on_done;
	struct journal *journal; /* NULL: not under way */
	struct journal_job *job;
};

/* Opens or makes the file; blocks (at start only). A damaged file is an error and stays as it is;
 * ERR_EXISTS: another node has it; ERR_MISMATCH: written by a later version. */
int journal_open(struct loop *l, const char *path, struct journal **ret, struct err *err) NODISCARD;
/* At start: from now on a durable row is described in its folder below one of these: row_file.h. */
int journal_describe(struct journal *j, int sandboxes, int snapshots, struct err *err) NODISCARD;
/* The same of templates and of builds that are ready. */
int journal_describe_catalog(struct journal *j, int templates, int builds,
			     struct err *err) NODISCARD;
/* Waits until what was asked for is written; no on_done follows. NULL is fine. */
void journal_close(struct journal *j);

struct latency;
struct journal_use {
	const struct latency *took; /* of writes and searches, from the wish to its end; borrowed */
	uint64_t failed;
};
struct journal_use journal_use(const struct journal *j);

/* A row that makes no sense here; it stays as it is. Of texts as much as fits and can be read. */
struct journal_odd {
	char id[NODE_ID_MAX + 1], team[NODE_ID_MAX + 1];
	char template_id[NODE_ID_MAX + 1], base_id[NODE_ID_MAX + 1];
	const char *why;
};
typedef void journal_odd_fn(const struct journal_odd *row, void *context);
typedef uint64_t journal_sums_fn(const char *id, bool snapshot, void *context);

/* All rows, in the order of started_ns; blocks (at start only). `row` is borrowed for the call. One
 * that cannot be read, or for which each() fails, is told to odd(); then comes the next. */
typedef int journal_each_fn(const struct journal_row *row, void *context, struct err *err);
int journal_each(struct journal *j, journal_each_fn *each, journal_odd_fn *odd, void *context,
		 struct err *err) NODISCARD;
/* Insert or replace, by sandbox.id; everything is copied. `durable`: synced to the disk before
 * on_done. Failure (-1): on_done will not come. */
int journal_put(struct journal *j, struct journal_write *w, const struct journal_row *row,
		bool durable, journal_done_fn *on_done, struct err *err) NODISCARD;
int journal_remove(struct journal *j, struct journal_write *w, const char *id,
		   journal_done_fn *on_done, struct err *err) NODISCARD;
void journal_write_cancel(struct journal_write *w); /* it is written all the same; no on_done */

/* As journal_remove(), and leaves a tombstone, in one transaction. */
int journal_bury(struct journal *j, struct journal_write *w, const struct node_tombstone *t,
		 journal_done_fn *on_done, struct err *err) NODISCARD;

struct journal_search;
/* Once, from the loop; `found` is borrowed for the call. */
typedef void journal_found_fn(struct journal_search *s, const struct node_tombstone *found,
			      size_t n, const struct err *err);
struct journal_search { /* embedded by the caller; all zero: nothing under way */
	struct journal_write write;
	journal_found_fn *on_found;
};

struct ended_query {
	const char *team, *id; /* team "": any */
	uint64_t after_ns;     /* of a list */
};
/* The tombstone of that id: 0 or 1. Sees all writes that were asked for before. */
int journal_find_ended(struct journal *j, struct journal_search *s, const struct ended_query *q,
		       journal_found_fn *on_found, struct err *err) NODISCARD;
/* Up to TOMBSTONES_PAGE that ended after (after_ns, id), the earliest first. */
int journal_list_ended(struct journal *j, struct journal_search *s, const struct ended_query *q,
		       journal_found_fn *on_found, struct err *err) NODISCARD;
void journal_search_cancel(struct journal_search *s);

/* Drops those that ended before, TOMBSTONES_SLICE of them at most. */
int journal_prune(struct journal *j, struct journal_write *w, uint64_t before_ns,
		  journal_done_fn *on_done, struct err *err) NODISCARD;
