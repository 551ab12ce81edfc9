/* journal_db.h - the journal's file: its migrations, its transactions, the table of
 * sandboxes. Blocks; used by one thread at a time. */
#pragma once

#include "node/journal/columns.h"
#include "node/journal/journal.h"

enum {
	JOURNAL_SCHEMA = 8,            /* PRAGMA user_version */
	JOURNAL_BUSY_MS = 2000,        /* for somebody who looks at the file with other tools */
	JOURNAL_WAL_PAGES = 2000,      /* of 4 KiB; more are moved into the file at leisure */
	JOURNAL_WAL_PAGES_MAX = 16000, /* and these at once */
};

struct journal_db;

int journal_db_open(const char *path, struct journal_db **ret, struct err *err) NODISCARD;
void journal_db_close(struct journal_db *d); /* NULL is fine */

extern const struct row_kind sandbox_rows; /* struct journal_row */
int journal_db_each(struct journal_db *d, journal_each_fn *each, journal_odd_fn *odd, void *context,
		    struct err *err) NODISCARD;

/* Between begin and end, or each a transaction of its own. `durable`: it is synced
 * to the disk. */
int journal_db_begin(struct journal_db *d, bool durable, struct err *err) NODISCARD;
/* What was done came to `rc`: commit it, or else undo it. 0 when all of it is there. */
int journal_db_end(struct journal_db *d, int rc, struct err *err) NODISCARD;
int journal_db_put(struct journal_db *d, const struct journal_row *row, struct err *err) NODISCARD;
int journal_db_remove(struct journal_db *d, const char *id, struct err *err) NODISCARD;

int journal_db_wal_pages(const struct journal_db *d); /* since the last checkpoint */
void journal_db_checkpoint(struct journal_db *d);     /* a failure only means that it comes later */
