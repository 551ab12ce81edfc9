/* journal_meta.c - what the journal knows of itself; and what else is asked at start. */
#include "node/journal/journal_meta.h"

#include "node/journal/bases_db.h"
#include "node/journal/journal_thread.h"
#include "node/journal/meta_db.h"
#include "node/journal/tombstones_db.h"

bool journal_fresh(struct journal *j)
{
	bool fresh = journal_db_fresh(journal_lock(j));

	journal_unlock(j);
	return fresh;
}

int journal_get_meta(struct journal *j, const char *name, char *ret, size_t size, struct err *err)
{
	int rc = journal_db_get_meta(journal_lock(j), name, ret, size, err);

	journal_unlock(j);
	return rc;
}

int journal_put_meta(struct journal *j, const char *name, const char *value, struct err *err)
{
	struct journal_db *db = journal_lock(j);
	int rc = journal_db_begin(db, true, err);

	if (rc == 0)
		rc = journal_db_put_meta(db, name, value, err);
	rc = journal_db_end(db, rc, err);
	journal_unlock(j);
	return rc;
}

int journal_note_meta(struct journal *j, struct journal_write *w, const char *name,
		      const char *value, journal_done_fn *on_done, struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_NOTE_META, &job, err) < 0)
		return -1;
	snprintf(job->about.id, sizeof(job->about.id), "%s", name);
	snprintf(job->about.team, sizeof(job->about.team), "%s", value);
	return journal_ask(j, job, w, on_done);
}

const char *journal_failure(const struct journal *j)
{
	return j->failure;
}

/* --- at start ----------------------------------------------------------------------------- */

bool journal_ended(struct journal *j, const char *id, enum node_reason *ret_reason)
{
	struct node_tombstone t, about = { 0 };
	struct tombstones found = { .all = &t, .max = 1 };
	struct err err;

	snprintf(about.id, sizeof(about.id), "%s", id);
	if (journal_db_find_ended(journal_lock(j), &about, &found, &err) < 0)
		found.n = 0;
	journal_unlock(j);
	if (found.n > 0)
		*ret_reason = (enum node_reason)t.reason;
	return found.n > 0;
}

int journal_bind(struct journal *j, journal_sums_fn *of, void *context, struct err *err)
{
	int rc = journal_db_bind(journal_lock(j), of, context, err);

	journal_unlock(j);
	return rc;
}
