/* journal_snapshots.c - the rows of snapshots are put, removed, read. */
#include "node/journal/journal_snapshots.h"

#include <errno.h>
#include <stdio.h>

#include "node/journal/journal_thread.h"
#include "node/journal/snapshots_db.h"

int journal_put_snapshot(struct journal *j, struct journal_write *w,
			 const struct journal_snapshot *row, journal_done_fn *on_done,
			 struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_PUT_SNAPSHOT, &job, err) < 0)
		return -1;
	job->snapshot = *row;
	job->snapshot.known = row->known ? strdup(row->known) : NULL; /* it can do without */
	job->snapshot.context = row->context ? strdup(row->context) : NULL;
	if (!job->snapshot.context != !row->context) {
		journal_job_free(job);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "the row of a snapshot");
	}
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

int journal_each_snapshot(struct journal *j, journal_each_snapshot_fn *each, journal_odd_fn *odd,
			  void *context, struct err *err)
{
	int rc = journal_db_each_snapshot(journal_lock(j), each, odd, context, err);

	journal_unlock(j);
	return rc;
}
