/* snapshots_db.c - the table of snapshots. */
#include "node/journal/snapshots_db.h"

#include "base/bytes.h"
#include "node/journal/rows_db.h"

static const struct column columns[] = {
#define SIZE(m) sizeof(((struct journal_snapshot *)0)->m)
#define MEMBER(m)                                   \
	{ #m,                                       \
	  SIZE(m) == sizeof(uint32_t)   ? COL_U32   \
	  : SIZE(m) == sizeof(uint64_t) ? COL_U64   \
					: COL_TEXT, \
	  offsetof(struct journal_snapshot, m), SIZE(m) }
#define LONG(m) { #m, COL_LONG, offsetof(struct journal_snapshot, m), SIZE(m) }
	MEMBER(id),     MEMBER(team),       MEMBER(base_id),      MEMBER(parent),
	MEMBER(source), MEMBER(name),       MEMBER(tag),          MEMBER(control_token),
	MEMBER(token),  MEMBER(created_ns), MEMBER(memory_bytes), MEMBER(disk_bytes),
	MEMBER(vcpus),  MEMBER(memory_mib), MEMBER(disk_mib),     MEMBER(layers),
	MEMBER(hidden), MEMBER(base_sums),  MEMBER(kind),         MEMBER(key),
	LONG(known),    LONG(context),
#undef LONG
#undef MEMBER
#undef SIZE
};

const struct row_kind snapshot_rows = { "snapshot", columns, COUNT(columns),
					sizeof(struct journal_snapshot) };

static const char sql_remove[] = "DELETE FROM snapshot WHERE id = ?";

int snapshots_db_open(struct journal_db *d, struct err *err)
{
	if (rows_db_prepare_put(d, &snapshot_rows, &d->put_snapshot, err) < 0)
		return -1;
	return journal_db_prepare(d, sql_remove, &d->remove_snapshot, err);
}

void snapshots_db_close(struct journal_db *d)
{
	sqlite3_finalize(d->put_snapshot);
	sqlite3_finalize(d->remove_snapshot);
}

int journal_db_put_snapshot(struct journal_db *d, const struct journal_snapshot *row,
			    struct err *err)
{
	rows_db_give(d->put_snapshot, &snapshot_rows, (const char *)row);
	return journal_db_run(d, d->put_snapshot, "put a snapshot", err);
}

int journal_db_remove_snapshot(struct journal_db *d, const char *id, struct err *err)
{
	statement_text(d->remove_snapshot, 1, id);
	return journal_db_run(d, d->remove_snapshot, "remove a snapshot", err);
}

struct snapshots_walk {
	struct rows_walk rows;
	journal_each_snapshot_fn *each;
};

static int take_snapshot(struct rows_walk *rows, struct err *err)
{
	struct snapshots_walk *w = CONTAINER_OF(rows, struct snapshots_walk, rows);
	struct journal_snapshot row;

	if (rows_db_take(rows, (char *)&row, err) < 0)
		return -1;
	return w->each(&row, rows->context, err);
}

int journal_db_each_snapshot(struct journal_db *d, journal_each_snapshot_fn *each,
			     journal_odd_fn *odd, void *context, struct err *err)
{
	struct snapshots_walk w = { { &snapshot_rows, "created_ns", take_snapshot, odd, context },
				    each };

	return rows_db_each(d, &w.rows, err);
}
