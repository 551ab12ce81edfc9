/* journal_db.h - the journal's file: all of its SQL. Blocks; used by one thread at a time. */
#pragma once

#include "node/journal/journal_snapshots.h"

enum {
	JOURNAL_SCHEMA = 6,            /* PRAGMA user_version */
	JOURNAL_BUSY_MS = 2000,        /* for somebody who looks at the file with other tools */
	JOURNAL_WAL_PAGES = 2000,      /* of 4 KiB; more are moved into the file at leisure */
	JOURNAL_WAL_PAGES_MAX = 16000, /* and these at once */
};

struct journal_db;

int journal_db_open(const char *path, struct journal_db **ret, struct err *err) NODISCARD;
void journal_db_close(struct journal_db *d); /* NULL is fine */

int journal_db_each(struct journal_db *d, journal_each_fn *each, journal_odd_fn *odd, void *context,
		    struct err *err) NODISCARD;

/* Between begin and commit, or each a transaction of its own. `durable`: the next commit is synced
 * to the disk. */
int journal_db_begin(struct journal_db *d, bool durable, struct err *err) NODISCARD;
int journal_db_commit(struct journal_db *d, struct err *err) NODISCARD;
void journal_db_rollback(struct journal_db *d);
int journal_db_put(struct journal_db *d, const struct journal_row *row, struct err *err) NODISCARD;
int journal_db_remove(struct journal_db *d, const char *id, struct err *err) NODISCARD;

/* Are there rows of sandboxes or snapshots, and tombstones? */
int journal_db_is_used(struct journal_db *d, bool *ret_rows, bool *ret_ended,
		       struct err *err) NODISCARD;

/* tombstones_db.c: in place of the row; the oldest beyond TOMBSTONES_MAX are dropped. */
int journal_db_bury(struct journal_db *d, const struct node_tombstone *t,
		    struct err *err) NODISCARD;
/* Of `team`, "" for any. *ret_n is 0 or 1. */
int journal_db_find_ended(struct journal_db *d, const char *team, const char *id,
			  struct node_tombstone *ret, size_t *ret_n, struct err *err) NODISCARD;
/* Those that ended after (after_ns, id), the earliest first. */
int journal_db_list_ended(struct journal_db *d, const char *team, uint64_t after_ns, const char *id,
			  struct node_tombstone *ret, size_t max, size_t *ret_n,
			  struct err *err) NODISCARD;
/* Drops up to `max` that ended before. *ret_n: how many. */
int journal_db_prune(struct journal_db *d, uint64_t before_ns, size_t max, size_t *ret_n,
		     struct err *err) NODISCARD;

/* bases_db.c: see journal_bind(). */
int journal_db_bind(struct journal_db *d, journal_sums_fn *of, void *context,
		    struct err *err) NODISCARD;

/* snapshots_db.c */
int journal_db_put_snapshot(struct journal_db *d, const struct journal_snapshot *row,
			    struct err *err) NODISCARD;
int journal_db_remove_snapshot(struct journal_db *d, const char *id, struct err *err) NODISCARD;
int journal_db_each_snapshot(struct journal_db *d, journal_each_snapshot_fn *each,
			     journal_odd_fn *odd, void *context, struct err *err) NODISCARD;

/* meta_db.c: *ret is "" when there is none of that name. */
bool journal_db_fresh(const struct journal_db *d); /* there was no journal before */
int journal_db_get_meta(struct journal_db *d, const char *name, char *ret, size_t size,
			struct err *err) NODISCARD;
int journal_db_put_meta(struct journal_db *d, const char *name, const char *value,
			struct err *err) NODISCARD;

/* reserve_db.c: room for what must be written when the disk is full, if there is little left. */
void journal_db_reserve(struct journal_db *d);

int journal_db_wal_pages(const struct journal_db *d); /* since the last checkpoint */
void journal_db_checkpoint(struct journal_db *d);     /* a failure only means that it comes later */
