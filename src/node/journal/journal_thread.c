/* journal_thread.c - the thread that writes. Everything that waits for it is one transaction. */
/* #syscalls: write futex clone3 clone mmap mprotect munmap madvise rt_sigprocmask set_robust_list
 *	rseq exit */
#include "node/journal/journal_thread.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "base/list.h"
#include "node/journal/catalog_db.h"
#include "node/journal/meta_db.h"
#include "node/journal/reserve_db.h"
#include "node/journal/row_file.h"
#include "node/journal/snapshots_db.h"

/* --- a job -------------------------------------------------------------------------------- */

int journal_job_make(const struct journal *j, enum job_kind kind, struct journal_job **ret,
		     struct err *err)
{
	if (j->n_jobs >= JOURNAL_QUEUE_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "journal: %d writes wait already",
			       JOURNAL_QUEUE_MAX);
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "journal: no memory for a write");
	(*ret)->kind = kind;
	return 0;
}

static void catalog_rows_free(struct catalog_rows *r)
{
	if (!r)
		return;
	free(r->template.tags);
	free(r->build.tags);
	free(r->build.reason);
	free(r);
}

void journal_job_free(struct journal_job *job)
{
	catalog_rows_free(job->catalog);
	free(job->row.text);
	free(job->row.known);
	free(job->snapshot.known);
	free(job->snapshot.context);
	free(job->found.all);
	free(job);
}

bool journal_job_searches(const struct journal_job *job)
{
	return job->kind == JOB_FIND || job->kind == JOB_LIST;
}

int journal_ask(struct journal *j, struct journal_job *job, struct journal_write *w,
		journal_done_fn *on_done)
{
	assert(!w->journal && !j->closed);
	*w = (struct journal_write){ .on_done = on_done, .journal = j, .job = job };
	job->write = w;
	job->asked_ns = clock_mono_ns();
	j->n_jobs++;
	j->n_searches += journal_job_searches(job);
	pthread_mutex_lock(&j->lock);
	queue_add(&j->asked, job);
	pthread_cond_signal(&j->more);
	pthread_mutex_unlock(&j->lock);
	return 0;
}

/* --- as the thread does it ---------------------------------------------------------------- */

/* Of a template and a build: what there is of them. */
static int describe_catalog(struct journal *j, const struct journal_job *job, struct err *err)
{
	const struct catalog_rows *r = job->catalog;

	if (j->templates < 0)
		return 0;
	if (job->kind == JOB_REMOVE_TEMPLATE)
		return row_file_drop(j->templates, job->about.id, true, err);
	if (job->kind == JOB_REMOVE_BUILD)
		return row_file_drop(j->builds, job->about.id, true, err);
	if (r->has_template && row_file_keep_template(j->templates, &r->template, err) < 0)
		return -1;
	return r->has_build ? row_file_keep_build(j->builds, &r->build, err) : 0;
}

/* Before its row: a row that says "paused" has its description. */
static int describe(struct journal *j, const struct journal_job *job, struct err *err)
{
	if (j->sandboxes < 0 || !job->durable)
		return 0;
	if (job->kind == JOB_PUT)
		return row_file_keep(j->sandboxes, &job->row, err);
	if (job->kind == JOB_PUT_SNAPSHOT)
		return row_file_keep_snapshot(j->snapshots, &job->snapshot, err);
	if (job->kind == JOB_REMOVE_SNAPSHOT)
		return row_file_drop(j->snapshots, job->snapshot.id, true, err);
	if (job->kind == JOB_PUT_TEMPLATE || job->kind == JOB_REMOVE_TEMPLATE ||
	    job->kind == JOB_REMOVE_BUILD)
		return describe_catalog(j, job, err);
	return 0;
}

static int put_catalog(struct journal_db *d, const struct catalog_rows *r, struct err *err)
{
	if (r->has_template && journal_db_put_template(d, &r->template, err) < 0)
		return -1;
	return r->has_build ? journal_db_put_build(d, &r->build, err) : 0;
}

static int do_job(struct journal *j, struct journal_job *job, struct err *err)
{
	const struct node_tombstone *t = &job->about;

	if (describe(j, job, err) < 0)
		return -1;
	switch (job->kind) {
	case JOB_PUT:
		return journal_db_put(j->db, &job->row, err);
	case JOB_REMOVE:
		return journal_db_remove(j->db, t->id, err);
	case JOB_BURY:
		return journal_db_bury(j->db, t, err);
	case JOB_NOTE_META:
		return journal_db_put_meta(j->db, t->id, t->team, err);
	case JOB_FIND:
		return journal_db_find_ended(j->db, t, &job->found, err);
	case JOB_LIST:
		return journal_db_list_ended(j->db, t, &job->found, err);
	case JOB_PRUNE:
		return journal_db_prune(j->db, t->ended_ns, TOMBSTONES_SLICE, &job->found.n, err);
	case JOB_PUT_SNAPSHOT:
		return journal_db_put_snapshot(j->db, &job->snapshot, err);
	case JOB_PUT_TEMPLATE:
		return put_catalog(j->db, job->catalog, err);
	case JOB_REMOVE_TEMPLATE:
		return journal_db_remove_template(j->db, t->id, err);
	case JOB_REMOVE_BUILD:
		return journal_db_remove_build(j->db, t->id, err);
	case JOB_REMOVE_SNAPSHOT:
		return journal_db_remove_snapshot(j->db, job->snapshot.id, err);
	}
	abort();
}

/* One transaction for all. Nothing of it is there after a failure. */
static int do_all(struct journal *j, struct journal_job *first, bool durable)
{
	struct err err = { 0 };
	int rc = journal_db_begin(j->db, durable, &err);

	for (struct journal_job *job = first; job && rc == 0; job = job->next)
		rc = do_job(j, job, &err);
	return journal_db_end(j->db, rc, &err);
}

static void try_one(struct journal *j, struct journal_job *job)
{
	job->rc = journal_db_begin(j->db, job->durable, &job->err);
	if (job->rc == 0)
		job->rc = do_job(j, job, &job->err);
	job->rc = journal_db_end(j->db, job->rc, &job->err);
}

/* Alone, so that it has the error that is its own. On a full disk the log can be emptied into the
 * file, where there is a reserve, and begins anew. */
static void do_one(struct journal *j, struct journal_job *job)
{
	try_one(j, job);
	if (job->rc < 0 && job->err.code != ERR_UNAVAILABLE) {
		journal_db_checkpoint(j->db);
		try_one(j, job);
	}
}

/* After a failure of all together. A file that is in use is not waited for again and again. */
static void do_each(struct journal *j, struct journal_job *first)
{
	struct journal_job *busy = NULL;

	for (struct journal_job *job = first; job; job = job->next) {
		if (busy) {
			job->rc = -1;
			job->err = busy->err;
			continue;
		}
		do_one(j, job);
		if (job->rc < 0 && job->err.code == ERR_UNAVAILABLE)
			busy = job;
	}
}

static void write_batch(struct journal *j, struct journal_job *first)
{
	bool durable = false;

	for (struct journal_job *job = first; job; job = job->next)
		durable |= job->durable;
	pthread_mutex_lock(&j->db_lock);
	if (do_all(j, first, durable) < 0)
		do_each(j, first);
	pthread_mutex_unlock(&j->db_lock);
}

static void ring(struct journal *j)
{
	const uint64_t one = 1;

	/* fails only when the counter is full, and then it has been rung often enough */
	(void)!write(j->bell, &one, sizeof(one));
}

static void checkpoint(struct journal *j)
{
	pthread_mutex_lock(&j->db_lock);
	journal_db_checkpoint(j->db);
	pthread_mutex_unlock(&j->db_lock);
}

static void reserve(struct journal *j)
{
	pthread_mutex_lock(&j->db_lock);
	journal_db_reserve(j->db);
	pthread_mutex_unlock(&j->db_lock);
}

/* With j->lock held. False: asked to stop, and nothing is left. */
static bool wait_for_jobs(struct journal *j)
{
	while (!j->stop) {
		int limit = j->asked.first ? JOURNAL_WAL_PAGES_MAX : JOURNAL_WAL_PAGES;

		if (journal_db_wal_pages(j->db) > limit) {
			pthread_mutex_unlock(&j->lock);
			checkpoint(j);
			pthread_mutex_lock(&j->lock);
		} else if (j->asked.first) {
			break;
		} else if (!j->reserved) {
			j->reserved = true;
			pthread_mutex_unlock(&j->lock);
			reserve(j);
			pthread_mutex_lock(&j->lock);
		} else {
			pthread_cond_wait(&j->more, &j->lock);
		}
	}
	return j->asked.first;
}

static void *thread_main(void *arg)
{
	struct journal *j = arg;

	pthread_mutex_lock(&j->lock);
	while (wait_for_jobs(j)) {
		struct jobs batch = { .last = &batch.first };

		queue_move(&batch, &j->asked);
		pthread_mutex_unlock(&j->lock);
		write_batch(j, batch.first);
		pthread_mutex_lock(&j->lock);
		j->reserved = false;
		queue_move(&j->done, &batch);
		ring(j);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

/* Signals are the loop's: the thread has none. */
int journal_thread_start(struct journal *j, struct err *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&j->thread, NULL, thread_main, j);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return err_set(err, ERR_EXHAUSTED, rc, "start the journal's thread");
	return 0;
}

void journal_thread_stop(struct journal *j)
{
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_cond_signal(&j->more);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->thread, NULL);
}

void journal_thread_collect(struct journal *j)
{
	pthread_mutex_lock(&j->lock);
	queue_move(&j->told, &j->done);
	pthread_mutex_unlock(&j->lock);
}

struct journal_db *journal_lock(struct journal *j)
{
	pthread_mutex_lock(&j->db_lock);
	return j->db;
}

void journal_unlock(struct journal *j)
{
	pthread_mutex_unlock(&j->db_lock);
}
