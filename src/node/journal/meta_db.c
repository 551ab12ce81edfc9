/* meta_db.c - what the journal knows of itself: names and values, a handful of them; whether it has
 * ever held anything. */
#include "node/journal/meta_db.h"

#include <errno.h>

#include "node/journal/statements_db.h"

static const char sql_get[] = "SELECT value FROM meta WHERE name = ?";
static const char sql_put[] = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)";

bool journal_db_fresh(const struct journal_db *d)
{
	return d->fresh;
}

int journal_db_is_used(struct journal_db *d, bool *ret_rows, bool *ret_ended, struct err *err)
{
	int rows = 0, ended = 0;

	if (journal_db_number(
		    d,
		    "SELECT EXISTS (SELECT 1 FROM sandbox) OR EXISTS (SELECT 1 FROM snapshot) "
		    "OR EXISTS (SELECT 1 FROM template)",
		    &rows, err) < 0 ||
	    journal_db_number(d, "SELECT EXISTS (SELECT 1 FROM tombstone)", &ended, err) < 0)
		return -1;
	*ret_rows = rows;
	*ret_ended = ended;
	return 0;
}

int journal_db_get_meta(struct journal_db *d, const char *name, char *ret, size_t size,
			struct err *err)
{
	AUTO(statement_done) sqlite3_stmt *s = NULL;
	int rc;

	ret[0] = '\0';
	if (journal_db_prepare(d, sql_get, &s, err) < 0)
		return -1;
	statement_text(s, 1, name);
	rc = sqlite3_step(s);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return journal_db_failed(d, "read meta", err);
	if (rc == SQLITE_ROW && !journal_db_text(s, 0, ret, size))
		return err_set(err, ERR_INTERNAL, 0, "journal: its %s makes no sense", name);
	return 0;
}

int journal_db_put_meta(struct journal_db *d, const char *name, const char *value, struct err *err)
{
	AUTO(statement_done) sqlite3_stmt *s = NULL;

	if (journal_db_prepare(d, sql_put, &s, err) < 0)
		return -1;
	statement_text(s, 1, name);
	statement_text(s, 2, value);
	return journal_db_run(d, s, "put meta", err);
}
