/* snapshots_db.c - the table of snapshots. */
#include "node/journal/snapshots_db.h"

#include "base/bytes.h"
#include "node/journal/rows_db.h"

enum { SQL_MAX = 1024 };

/* All columns but the last, `known`: texts first, then numbers. */
static const struct column columns[] = {
#define SIZE(m) sizeof(((struct journal_snapshot *)0)->m)
#define MEMBER(m)                                   \
	{ #m,                                       \
	  SIZE(m) == sizeof(uint32_t)   ? COL_U32   \
	  : SIZE(m) == sizeof(uint64_t) ? COL_U64   \
					: COL_TEXT, \
	  offsetof(struct journal_snapshot, m), SIZE(m) }
	MEMBER(id),     MEMBER(team),       MEMBER(base_id),      MEMBER(parent),
	MEMBER(source), MEMBER(name),       MEMBER(tag),          MEMBER(control_token),
	MEMBER(token),  MEMBER(created_ns), MEMBER(memory_bytes), MEMBER(disk_bytes),
	MEMBER(vcpus),  MEMBER(memory_mib), MEMBER(disk_mib),     MEMBER(layers),
	MEMBER(hidden), MEMBER(base_sums),
};
enum { TEXTS = 9 };

struct columns journal_snapshot_columns(void)
{
	return (struct columns){ columns, COUNT(columns) };
}

static const char sql_remove[] = "DELETE FROM snapshot WHERE id = ?";

static int prepare(struct journal_db *d, const char *before, const char *after, sqlite3_stmt **ret,
		   struct err *err)
{
	AUTO(buf_done) struct buf sql = BUF_MAX(SQL_MAX);

	if (buf_printf(&sql, err, "%s", before) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(columns); i++)
		if (buf_printf(&sql, err, "%s%s", i ? ", " : "", columns[i].name) < 0)
			return -1;
	if (buf_printf(&sql, err, ", known%s%c", after, '\0') < 0)
		return -1;
	return journal_db_prepare(d, (const char *)sql.ptr, ret, err);
}

int snapshots_db_open(struct journal_db *d, struct err *err)
{
	char values[2 * COUNT(columns) + 16] = ") VALUES (?,?";

	for (size_t i = 1, n = strlen(values); i < COUNT(columns); i++, n += 2)
		memcpy(values + n, ",?", 3);
	memcpy(values + strlen(values), ")", 2);
	if (prepare(d, "INSERT OR REPLACE INTO snapshot (", values, &d->put_snapshot, err) < 0)
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
	for (size_t i = 0; i < COUNT(columns); i++) {
		const char *from = (const char *)row + columns[i].at;
		uint64_t number = 0;

		if (i < TEXTS) {
			(void)sqlite3_bind_text(d->put_snapshot, (int)i + 1, from, -1,
						SQLITE_STATIC);
			continue;
		}
		memcpy(&number, from, columns[i].size); /* the low bytes come first */
		(void)sqlite3_bind_int64(d->put_snapshot, (int)i + 1, (sqlite3_int64)number);
	}
	(void)sqlite3_bind_text(d->put_snapshot, COUNT(columns) + 1, row->known, -1, SQLITE_STATIC);
	return journal_db_run(d, d->put_snapshot, "put a snapshot", err);
}

int journal_db_remove_snapshot(struct journal_db *d, const char *id, struct err *err)
{
	(void)sqlite3_bind_text(d->remove_snapshot, 1, id, -1, SQLITE_STATIC);
	return journal_db_run(d, d->remove_snapshot, "remove a snapshot", err);
}

static int take(sqlite3_stmt *s, struct journal_snapshot *r, struct err *err)
{
	const unsigned char *known = sqlite3_column_text(s, COUNT(columns));

	*r = (struct journal_snapshot){ 0 };
	memcpy(&r->known, &known, sizeof(known)); /* only read by who is called */
	for (size_t i = 0; i < COUNT(columns); i++) {
		char *to = (char *)r + columns[i].at;
		uint64_t number = (uint64_t)sqlite3_column_int64(s, (int)i);

		if (i >= TEXTS)
			memcpy(to, &number, columns[i].size);
		else if (!journal_db_text(s, (int)i, to, columns[i].size))
			return err_set(err, ERR_INVALID, 0, "%s is too long", columns[i].name);
	}
	return 0;
}

struct snapshots_walk {
	struct rows_walk rows;
	journal_each_snapshot_fn *each;
};

static int take_snapshot(struct rows_walk *rows, struct err *err)
{
	struct snapshots_walk *w = CONTAINER_OF(rows, struct snapshots_walk, rows);
	struct journal_snapshot row;

	if (take(rows->row, &row, err) < 0)
		return -1;
	return w->each(&row, rows->context, err);
}

int journal_db_each_snapshot(struct journal_db *d, journal_each_snapshot_fn *each,
			     journal_odd_fn *odd, void *context, struct err *err)
{
	struct snapshots_walk w = { { "SELECT rowid, created_ns, id FROM snapshot", NULL,
				      take_snapshot, odd, context },
				    each };
	int rc;

	if (prepare(d, "SELECT ", " FROM snapshot WHERE rowid = ?", &w.rows.row, err) < 0)
		return -1;
	rc = rows_db_each(d, &w.rows, err);
	sqlite3_finalize(w.rows.row);
	return rc;
}
