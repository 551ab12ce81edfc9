/* journal_more.c - what else is written: tombstones, snapshots, what the journal knows of itself;
 * and what is read at start. */
#include <errno.h>

#include "base/bytes.h"
#include "node/journal/bases_db.h"
#include "node/journal/journal_inside.h"
#include "node/journal/journal_meta.h"
#include "node/journal/meta_db.h"
#include "node/journal/rebuild.h"
#include "node/journal/tombstones_db.h"

int journal_bury(struct journal *j, struct journal_write *w, const struct node_tombstone *t,
		 void (*on_done)(struct journal_write *w, const struct err *err), struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_BURY, &job, err) < 0)
		return -1;
	job->about = *t;
	return journal_ask(j, job, w, on_done);
}

int journal_prune(struct journal *j, struct journal_write *w, uint64_t before_ns,
		  void (*on_done)(struct journal_write *w, const struct err *err), struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_PRUNE, &job, err) < 0)
		return -1;
	job->about.ended_ns = before_ns;
	return journal_ask(j, job, w, on_done);
}

static int search(struct journal *j, struct journal_search *s, enum job_kind kind,
		  const struct node_tombstone *about, size_t max, journal_found_fn *on_found,
		  struct err *err)
{
	struct journal_job *job;

	if (journal_searching(j) >= JOURNAL_SEARCHES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "journal: %d searches wait already",
			       JOURNAL_SEARCHES_MAX);
	if (journal_job_make(j, kind, &job, err) < 0)
		return -1;
	job->about = *about;
	job->max = max;
	job->found = calloc(max, sizeof(*job->found));
	if (!job->found) {
		journal_job_free(job);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "journal: no memory for a search");
	}
	s->on_found = on_found;
	return journal_ask(j, job, &s->write, NULL);
}

int journal_find_ended(struct journal *j, struct journal_search *s, const char *team,
		       const char *id, journal_found_fn *on_found, struct err *err)
{
	struct node_tombstone about = { 0 };

	snprintf(about.team, sizeof(about.team), "%s", team);
	snprintf(about.id, sizeof(about.id), "%s", id);
	return search(j, s, JOB_FIND, &about, 1, on_found, err);
}

int journal_list_ended(struct journal *j, struct journal_search *s, const char *team,
		       uint64_t after_ns, const char *id, journal_found_fn *on_found,
		       struct err *err)
{
	struct node_tombstone about = { .ended_ns = after_ns };

	snprintf(about.team, sizeof(about.team), "%s", team);
	snprintf(about.id, sizeof(about.id), "%s", id);
	return search(j, s, JOB_LIST, &about, TOMBSTONES_PAGE, on_found, err);
}

void journal_search_cancel(struct journal_search *s)
{
	journal_write_cancel(&s->write);
}

int journal_put_snapshot(struct journal *j, struct journal_write *w,
			 const struct journal_snapshot *row, journal_done_fn *on_done,
			 struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_PUT_SNAPSHOT, &job, err) < 0)
		return -1;
	job->snapshot = *row;
	job->snapshot.known = row->known ? strdup(row->known) : NULL; /* it can do without */
	job->durable = true;
	return journal_ask(j, job, w, on_done);
}

int journal_remove_snapshot(struct journal *j, struct journal_write *w, const char *id,
			    journal_done_fn *on_done, struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_REMOVE_SNAPSHOT, &job, err) < 0)
		return -1;
	snprintf(job->snapshot.id, sizeof(job->snapshot.id), "%s", id);
	job->durable = true;
	return journal_ask(j, job, w, on_done);
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

/* --- what the journal knows of itself ----------------------------------------------------- */

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
	if (rc == 0)
		rc = journal_db_commit(db, err);
	if (rc < 0)
		journal_db_rollback(db);
	journal_unlock(j);
	return rc;
}

/* --- at start ----------------------------------------------------------------------------- */

bool journal_ended(struct journal *j, const char *id, enum node_reason *ret_reason)
{
	struct node_tombstone t;
	struct err err;
	size_t n = 0;

	if (journal_db_find_ended(journal_lock(j), "", id, &t, &n, &err) < 0)
		n = 0;
	journal_unlock(j);
	if (n > 0)
		*ret_reason = (enum node_reason)t.reason;
	return n > 0;
}

int journal_rebuild(struct journal *j, int sandboxes, int snapshots, struct rebuild_user *u,
		    struct rebuilt *ret, struct err *err)
{
	struct journal_db *db = journal_lock(j);
	bool rows = false, ended = false;
	int rc = journal_db_is_used(db, &rows, &ended, err);

	*ret = (struct rebuilt){ 0 };
	if (rc == 0 && !rows && !ended)
		rc = rebuild_fill(db, sandboxes, snapshots, u, ret, err);
	journal_unlock(j);
	return rc;
}

int journal_bind(struct journal *j, journal_sums_fn *of, void *context, struct err *err)
{
	int rc = journal_db_bind(journal_lock(j), of, context, err);

	journal_unlock(j);
	return rc;
}
