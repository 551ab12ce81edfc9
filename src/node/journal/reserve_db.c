/* reserve_db.c - room in the journal's own files, so that on a full disk ends and pauses can still
 * be written.
 *
 * Pages that hold nothing are kept inside the file, and the log beside it is never made shorter.
 * Both are room that no other file on the disk can take. A write that does not fit into the log is
 * done again after the log was emptied into the file: see journal.c.
 */
#include "node/journal/reserve_db.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "node/journal/statements_db.h"

enum {
	RESERVE_PAGES = 512, /* of 4 KiB: as many as sql_grow makes */
	RESERVE_AGAIN_S = 60,
};

/* Dropped first: a node may have died between the two. A page is allocated on the disk when it was
 * written once, so what holds it is committed before it goes. */
static const char *const sql_grow[] = {
	"DROP TABLE IF EXISTS reserve",
	"CREATE TABLE reserve (room BLOB)",
	"INSERT INTO reserve VALUES (zeroblob(2097152))",
	"DROP TABLE reserve",
};

static int free_pages(struct journal_db *d)
{
	int n = -1;

	if (sqlite3_step(d->free_pages) == SQLITE_ROW)
		n = sqlite3_column_int(d->free_pages, 0);
	sqlite3_reset(d->free_pages);
	return n;
}

static int grow(struct journal_db *d)
{
	for (size_t i = 0; i < COUNT(sql_grow); i++)
		if (sqlite3_exec(d->db, sql_grow[i], NULL, NULL, NULL) != SQLITE_OK)
			return -1;
	return 0;
}

void journal_db_reserve(struct journal_db *d)
{
	int n = free_pages(d);

	if (n < 0 || n >= RESERVE_PAGES / 2 || clock_mono_ns() < d->reserve_after_ns)
		return;
	if (grow(d) < 0) /* the disk is full: what there is is for rows */
		d->reserve_after_ns = clock_mono_ns() + RESERVE_AGAIN_S * NSEC_PER_SEC;
	journal_db_checkpoint(d);
}

int reserve_db_open(struct journal_db *d, struct err *err)
{
	int yes = 1;

	if (journal_db_prepare(d, "PRAGMA freelist_count", &d->free_pages, err) < 0)
		return -1;
	(void)sqlite3_file_control(d->db, NULL, SQLITE_FCNTL_PERSIST_WAL, &yes);
	journal_db_reserve(d);
	return 0;
}

void reserve_db_close(struct journal_db *d)
{
	sqlite3_finalize(d->free_pages);
}
