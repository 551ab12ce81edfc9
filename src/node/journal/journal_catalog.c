/* journal_catalog.c - the rows of templates and builds are put, removed, read. */
#include "node/journal/journal_catalog.h"

#include <errno.h>
#include <stdio.h>

#include "node/journal/catalog_db.h"
#include "node/journal/journal_thread.h"

static int copy_text(const char *from, char **ret)
{
	*ret = from ? strdup(from) : NULL;
	return !*ret == !from ? 0 : -1;
}

static int fill(struct journal_job *job, const struct journal_template *t,
		const struct journal_build *b)
{
	job->catalog = calloc(1, sizeof(*job->catalog));
	if (!job->catalog)
		return -1;
	job->catalog->has_template = t != NULL;
	job->catalog->has_build = b != NULL;
	if (t) {
		job->catalog->template = *t;
		if (copy_text(t->tags, &job->catalog->template.tags) < 0)
			return -1;
	}
	if (!b)
		return 0;
	job->catalog->build = *b;
	job->catalog->build.reason = NULL;
	if (copy_text(b->tags, &job->catalog->build.tags) < 0)
		return -1;
	return copy_text(b->reason, &job->catalog->build.reason);
}

int journal_put_template(struct journal *j, struct journal_write *w,
			 const struct journal_template *t, const struct journal_build *b,
			 journal_done_fn *on_done, struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_PUT_TEMPLATE, &job, err) < 0)
		return -1;
	job->durable = true;
	if (fill(job, t, b) < 0) {
		journal_job_free(job);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "journal: no memory for a template");
	}
	return journal_ask(j, job, w, on_done);
}

static int ask_remove(struct journal *j, enum job_kind kind, const char *id,
		      struct journal_write *w, journal_done_fn *on_done, struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, kind, &job, err) < 0)
		return -1;
	snprintf(job->about.id, sizeof(job->about.id), "%s", id);
	job->durable = true;
	return journal_ask(j, job, w, on_done);
}

int journal_remove_template(struct journal *j, struct journal_write *w, const char *id,
			    journal_done_fn *on_done, struct err *err)
{
	return ask_remove(j, JOB_REMOVE_TEMPLATE, id, w, on_done, err);
}

int journal_remove_build(struct journal *j, struct journal_write *w, const char *id,
			 journal_done_fn *on_done, struct err *err)
{
	return ask_remove(j, JOB_REMOVE_BUILD, id, w, on_done, err);
}

int journal_each_template(struct journal *j, journal_each_template_fn *each, journal_odd_fn *odd,
			  void *context, struct err *err)
{
	int rc = journal_db_each_template(journal_lock(j), each, odd, context, err);

	journal_unlock(j);
	return rc;
}

int journal_each_build(struct journal *j, journal_each_build_fn *each, journal_odd_fn *odd,
		       void *context, struct err *err)
{
	int rc = journal_db_each_build(journal_lock(j), each, odd, context, err);

	journal_unlock(j);
	return rc;
}
