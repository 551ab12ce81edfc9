/* tombstones_db.c - those that ended: who, when, why. */
#include "node/journal/tombstones_db.h"

#include "node/journal/statements_db.h"

#define COLUMNS "id, team, template_id, started_ns, ended_ns, reason"

enum { COL_ID, COL_TEAM, COL_TEMPLATE, COL_STARTED, COL_ENDED, COL_REASON };

static const char sql_bury[] =
	"INSERT OR REPLACE INTO tombstone (" COLUMNS ") VALUES (?, ?, ?, ?, ?, ?)";
/* As many as come, so that the table shrinks to its bound when the bound was larger before. */
static const char sql_shorten[] = "DELETE FROM tombstone WHERE seq IN (SELECT seq FROM tombstone"
				  " WHERE seq <= ? ORDER BY seq LIMIT 16)";
static const char sql_find[] = "SELECT " COLUMNS " FROM tombstone WHERE id = ?1"
			       " AND (?2 = '' OR team = ?2)";
static const char sql_list[] = "SELECT " COLUMNS " FROM tombstone WHERE team = ?1"
			       " AND (ended_ns, id) > (?2, ?3) ORDER BY ended_ns, id LIMIT ?4";
static const char sql_list_all[] = "SELECT " COLUMNS " FROM tombstone"
				   " WHERE (ended_ns, id) > (?2, ?3)"
				   " ORDER BY ended_ns, id LIMIT ?4";
static const char sql_prune[] = "DELETE FROM tombstone WHERE seq IN (SELECT seq FROM tombstone"
				" WHERE ended_ns < ? ORDER BY ended_ns LIMIT ?)";

int tombstones_db_open(struct journal_db *d, struct err *err)
{
	if (journal_db_prepare(d, sql_bury, &d->bury, err) < 0 ||
	    journal_db_prepare(d, sql_shorten, &d->shorten, err) < 0 ||
	    journal_db_prepare(d, sql_find, &d->find, err) < 0 ||
	    journal_db_prepare(d, sql_list, &d->list, err) < 0 ||
	    journal_db_prepare(d, sql_list_all, &d->list_all, err) < 0)
		return -1;
	return journal_db_prepare(d, sql_prune, &d->prune, err);
}

void tombstones_db_close(struct journal_db *d)
{
	sqlite3_finalize(d->bury);
	sqlite3_finalize(d->shorten);
	sqlite3_finalize(d->find);
	sqlite3_finalize(d->list);
	sqlite3_finalize(d->list_all);
	sqlite3_finalize(d->prune);
}

int journal_db_bury(struct journal_db *d, const struct node_tombstone *t, struct err *err)
{
	sqlite3_int64 last;

	if (journal_db_remove(d, t->id, err) < 0)
		return -1;
	statement_text(d->bury, COL_ID + 1, t->id);
	statement_text(d->bury, COL_TEAM + 1, t->team);
	statement_text(d->bury, COL_TEMPLATE + 1, t->template_id);
	statement_number(d->bury, COL_STARTED + 1, t->started_ns);
	statement_number(d->bury, COL_ENDED + 1, t->ended_ns);
	statement_number(d->bury, COL_REASON + 1, t->reason);
	if (journal_db_run(d, d->bury, "bury", err) < 0)
		return -1;
	last = sqlite3_last_insert_rowid(d->db);
	if (last <= TOMBSTONES_MAX)
		return 0;
	statement_number(d->shorten, 1, (uint64_t)(last - TOMBSTONES_MAX));
	return journal_db_run(d, d->shorten, "drop the oldest tombstones", err);
}

static bool take(sqlite3_stmt *s, struct node_tombstone *t)
{
	int64_t reason = sqlite3_column_int64(s, COL_REASON);

	*t = (struct node_tombstone){
		.started_ns = (uint64_t)sqlite3_column_int64(s, COL_STARTED),
		.ended_ns = (uint64_t)sqlite3_column_int64(s, COL_ENDED),
		.reason = (uint32_t)reason,
	};
	return reason >= 0 && reason < NODE_REASONS &&
	       journal_db_text(s, COL_ID, t->id, sizeof(t->id)) &&
	       journal_db_text(s, COL_TEAM, t->team, sizeof(t->team)) &&
	       journal_db_text(s, COL_TEMPLATE, t->template_id, sizeof(t->template_id));
}

/* The rows of a statement; what makes no sense is left out: a list is better than none. */
static int take_all(struct journal_db *d, sqlite3_stmt *s, struct tombstones *ret, struct err *err)
{
	int rc = SQLITE_DONE;

	ret->n = 0;
	while (ret->n < ret->max && (rc = sqlite3_step(s)) == SQLITE_ROW)
		if (take(s, &ret->all[ret->n]))
			ret->n++;
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		journal_db_failed(d, "read tombstones", err);
	sqlite3_reset(s);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

int journal_db_find_ended(struct journal_db *d, const struct node_tombstone *about,
			  struct tombstones *ret, struct err *err)
{
	statement_text(d->find, 1, about->id);
	statement_text(d->find, 2, about->team);
	return take_all(d, d->find, ret, err);
}

int journal_db_list_ended(struct journal_db *d, const struct node_tombstone *about,
			  struct tombstones *ret, struct err *err)
{
	sqlite3_stmt *s = about->team[0] ? d->list : d->list_all;

	if (about->team[0])
		statement_text(s, 1, about->team);
	statement_number(s, 2, about->ended_ns < INT64_MAX ? about->ended_ns : INT64_MAX);
	statement_text(s, 3, about->id);
	statement_number(s, 4, ret->max);
	return take_all(d, s, ret, err);
}

int journal_db_prune(struct journal_db *d, uint64_t before_ns, size_t max, size_t *ret_n,
		     struct err *err)
{
	statement_number(d->prune, 1, before_ns);
	statement_number(d->prune, 2, max);
	if (journal_db_run(d, d->prune, "prune tombstones", err) < 0)
		return -1;
	*ret_n = (size_t)sqlite3_changes(d->db);
	return 0;
}
