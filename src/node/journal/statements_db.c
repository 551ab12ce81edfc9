/* statements_db.c - a statement is made and run; what SQLite says of a failure becomes an error. */
#include "node/journal/statements_db.h"

#include "base/bytes.h"

void statement_done(sqlite3_stmt **s)
{
	sqlite3_finalize(*s);
}

static enum err_code code_of(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_FULL:
		return ERR_NO_SPACE;
	case SQLITE_NOMEM:
		return ERR_EXHAUSTED;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return ERR_UNAVAILABLE;
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_READONLY:
		return ERR_DENIED;
	default:
		return ERR_INTERNAL;
	}
}

int journal_db_failed(struct journal_db *d, const char *what, struct err *err)
{
	int rc = sqlite3_extended_errcode(d->db);
	int sys = sqlite3_system_errno(d->db);

	return err_set(err, code_of(rc), sys, "journal: %s: %s", what, sqlite3_errmsg(d->db));
}

int journal_db_prepare(struct journal_db *d, const char *sql, sqlite3_stmt **ret, struct err *err)
{
	if (sqlite3_prepare_v3(d->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) != SQLITE_OK)
		return journal_db_failed(d, "prepare", err);
	return 0;
}

int journal_db_run(struct journal_db *d, sqlite3_stmt *s, const char *what, struct err *err)
{
	int rc = sqlite3_step(s);

	if (rc != SQLITE_DONE)
		journal_db_failed(d, what, err);
	sqlite3_reset(s);
	return rc == SQLITE_DONE ? 0 : -1;
}

int journal_db_number(struct journal_db *d, const char *sql, int *ret, struct err *err)
{
	AUTO(statement_done) sqlite3_stmt *s = NULL;

	if (journal_db_prepare(d, sql, &s, err) < 0)
		return -1;
	if (sqlite3_step(s) != SQLITE_ROW)
		return journal_db_failed(d, sql, err);
	*ret = sqlite3_column_int(s, 0);
	return 0;
}

void statement_text(sqlite3_stmt *s, int i, const char *text)
{
	(void)sqlite3_bind_text(s, i, text, -1, SQLITE_STATIC);
}

void statement_number(sqlite3_stmt *s, int i, uint64_t n)
{
	(void)sqlite3_bind_int64(s, i, (sqlite3_int64)n);
}

bool journal_db_text(sqlite3_stmt *s, int column, char *ret, size_t size)
{
	struct bytes b = { sqlite3_column_text(s, column),
			   (size_t)sqlite3_column_bytes(s, column) };

	return b.ptr && bytes_to_str(b, ret, size);
}
