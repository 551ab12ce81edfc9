/* snapshots_db.h - the table of snapshots. Blocks. */
#pragma once

#include "node/journal/journal_db.h"
#include "node/journal/journal_snapshots.h"

/* For journal_db.c. */
int snapshots_db_open(struct journal_db *d, struct err *err) NODISCARD;
void snapshots_db_close(struct journal_db *d);

extern const struct row_kind snapshot_rows; /* struct journal_snapshot */
int journal_db_put_snapshot(struct journal_db *d, const struct journal_snapshot *row,
			    struct err *err) NODISCARD;
int journal_db_remove_snapshot(struct journal_db *d, const char *id, struct err *err) NODISCARD;
int journal_db_each_snapshot(struct journal_db *d, journal_each_snapshot_fn *each,
			     journal_odd_fn *odd, void *context, struct err *err) NODISCARD;
