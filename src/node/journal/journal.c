/* journal.c - what is asked of the journal, and told when it is done. The loop's side: what the
 * thread does is in journal_thread.c. */
/* #syscalls: eventfd2 read close fcntl */
#include "node/journal/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>

#include "base/clock.h"
#include "base/list.h"
#include "node/journal/journal_thread.h"

/* --- what is done is told ----------------------------------------------------------------- */

static void tell(struct journal_job *job)
{
	struct journal_write *w = job->write;

	if (!w)
		return;
	w->journal = NULL;
	w->job = NULL;
	if (!journal_job_searches(job)) {
		w->on_done(w, job->rc < 0 ? &job->err : NULL);
	} else {
		struct journal_search *s = CONTAINER_OF(w, struct journal_search, write);

		s->on_found(s, job->found.all, job->rc < 0 ? 0 : job->found.n,
			    job->rc < 0 ? &job->err : NULL);
	}
}

static void journal_free(struct journal *j)
{
	auto_close(&j->sandboxes);
	auto_close(&j->snapshots);
	auto_close(&j->templates);
	auto_close(&j->builds);
	while (j->told.first)
		journal_job_free(queue_take(&j->told));
	free(j);
}

static void on_rung(struct watch *rung, unsigned int events)
{
	struct journal *j = CONTAINER_OF(rung, struct journal, rung);
	uint64_t times;

	(void)events;
	(void)!read(j->bell, &times, sizeof(times));
	journal_thread_collect(j);
	j->telling = true;
	for (struct journal_job *job; !j->closed && (job = queue_take(&j->told));) {
		j->n_jobs--;
		j->n_searches -= journal_job_searches(job);
		latency_add(&j->took, (clock_mono_ns() - job->asked_ns) / 1000);
		j->n_failed += job->rc < 0;
		if (job->rc < 0 && job->err.code == ERR_INTERNAL)
			snprintf(j->failure, sizeof(j->failure), "%.*s", JOURNAL_FAILURE_MAX - 1,
				 job->err.msg);
		tell(job);
		journal_job_free(job);
	}
	j->telling = false;
	if (j->closed)
		journal_free(j);
}

struct journal_use journal_use(const struct journal *j)
{
	return (struct journal_use){ &j->took, j->n_failed };
}

/* --- rows --------------------------------------------------------------------------------- */

int journal_put(struct journal *j, struct journal_write *w, const struct journal_row *row,
		bool durable, journal_done_fn *on_done, struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_PUT, &job, err) < 0)
		return -1;
	job->row = *row;
	job->durable = durable;
	job->row.text = row->text ? strdup(row->text) : NULL;
	job->row.known = row->known ? strdup(row->known) : NULL;
	if (!job->row.text != !row->text || !job->row.known != !row->known) {
		journal_job_free(job);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "journal: no memory for a text");
	}
	return journal_ask(j, job, w, on_done);
}

int journal_remove(struct journal *j, struct journal_write *w, const char *id,
		   journal_done_fn *on_done, struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_REMOVE, &job, err) < 0)
		return -1;
	snprintf(job->about.id, sizeof(job->about.id), "%s", id);
	return journal_ask(j, job, w, on_done);
}

void journal_write_cancel(struct journal_write *w)
{
	if (!w->journal)
		return;
	w->job->write = NULL;
	w->journal = NULL;
	w->job = NULL;
}

int journal_each(struct journal *j, journal_each_fn *each, journal_odd_fn *odd, void *context,
		 struct err *err)
{
	int rc = journal_db_each(journal_lock(j), each, odd, context, err);

	journal_unlock(j);
	return rc;
}

/* --- those that ended --------------------------------------------------------------------- */

int journal_bury(struct journal *j, struct journal_write *w, const struct node_tombstone *t,
		 journal_done_fn *on_done, struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_BURY, &job, err) < 0)
		return -1;
	job->about = *t;
	return journal_ask(j, job, w, on_done);
}

int journal_prune(struct journal *j, struct journal_write *w, uint64_t before_ns,
		  journal_done_fn *on_done, struct err *err)
{
	struct journal_job *job;

	if (journal_job_make(j, JOB_PRUNE, &job, err) < 0)
		return -1;
	job->about.ended_ns = before_ns;
	return journal_ask(j, job, w, on_done);
}

static int search(struct journal *j, struct journal_search *s, enum job_kind kind,
		  const struct ended_query *q, struct err *err)
{
	struct journal_job *job;

	if (j->n_searches >= JOURNAL_SEARCHES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "journal: %d searches wait already",
			       JOURNAL_SEARCHES_MAX);
	if (journal_job_make(j, kind, &job, err) < 0)
		return -1;
	job->about.ended_ns = q->after_ns;
	snprintf(job->about.team, sizeof(job->about.team), "%s", q->team);
	snprintf(job->about.id, sizeof(job->about.id), "%s", q->id);
	job->found.max = kind == JOB_FIND ? 1 : TOMBSTONES_PAGE;
	job->found.all = calloc(job->found.max, sizeof(*job->found.all));
	if (!job->found.all) {
		journal_job_free(job);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "journal: no memory for a search");
	}
	return journal_ask(j, job, &s->write, NULL);
}

int journal_find_ended(struct journal *j, struct journal_search *s, const struct ended_query *q,
		       journal_found_fn *on_found, struct err *err)
{
	s->on_found = on_found;
	return search(j, s, JOB_FIND, q, err);
}

int journal_list_ended(struct journal *j, struct journal_search *s, const struct ended_query *q,
		       journal_found_fn *on_found, struct err *err)
{
	s->on_found = on_found;
	return search(j, s, JOB_LIST, q, err);
}

void journal_search_cancel(struct journal_search *s)
{
	journal_write_cancel(&s->write);
}

/* --- its beginning and its end ------------------------------------------------------------ */

/* What journal_open() made before the thread; each may be missing. */
static int open_failed(struct journal *j)
{
	watch_close(&j->rung);
	auto_close(&j->bell);
	journal_db_close(j->db);
	free(j);
	return -1;
}

int journal_describe(struct journal *j, int sandboxes, int snapshots, struct err *err)
{
	j->sandboxes = fcntl(sandboxes, F_DUPFD_CLOEXEC, 0);
	j->snapshots = fcntl(snapshots, F_DUPFD_CLOEXEC, 0);
	if (j->sandboxes < 0 || j->snapshots < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "a descriptor");
	return 0;
}

int journal_describe_catalog(struct journal *j, int templates, int builds, struct err *err)
{
	j->templates = fcntl(templates, F_DUPFD_CLOEXEC, 0);
	j->builds = fcntl(builds, F_DUPFD_CLOEXEC, 0);
	if (j->templates < 0 || j->builds < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "a descriptor");
	return 0;
}

int journal_open(struct loop *l, const char *path, struct journal **ret, struct err *err)
{
	struct journal *j = calloc(1, sizeof(*j));

	if (!j)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the journal");
	j->sandboxes = j->snapshots = j->templates = j->builds = -1;
	queue_init(&j->asked);
	queue_init(&j->done);
	queue_init(&j->told);
	pthread_mutex_init(&j->lock, NULL);
	pthread_mutex_init(&j->db_lock, NULL);
	pthread_cond_init(&j->more, NULL);
	j->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (j->bell < 0) {
		err_set(err, ERR_EXHAUSTED, errno, "make an eventfd");
		return open_failed(j);
	}
	if (journal_db_open(path, &j->db, err) < 0 ||
	    watch_open(&j->rung, l, j->bell, WATCH_READ, on_rung, err) < 0 ||
	    journal_thread_start(j, err) < 0)
		return open_failed(j);
	*ret = j;
	return 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	journal_thread_stop(j);
	journal_thread_collect(j);
	for (struct journal_job *job = j->told.first; job; job = job->next)
		if (job->write)
			journal_write_cancel(job->write);
	watch_close(&j->rung);
	close(j->bell);
	journal_db_close(j->db);
	pthread_cond_destroy(&j->more);
	pthread_mutex_destroy(&j->lock);
	pthread_mutex_destroy(&j->db_lock);
	j->closed = true;
	if (!j->telling)
		journal_free(j);
}
