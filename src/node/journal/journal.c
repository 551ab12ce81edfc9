/* journal.c - the thread that writes. Everything that waits for it is one transaction. */
/* #syscalls: eventfd2 read write close fcntl futex clone3 clone mmap mprotect munmap madvise
 *	rt_sigprocmask set_robust_list rseq exit */
#include "node/journal/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "net/watch.h"
#include "node/journal/journal_inside.h"
#include "node/journal/journal_meta.h"
#include "node/journal/meta_db.h"
#include "node/journal/reserve_db.h"
#include "node/journal/row_file.h"
#include "node/journal/snapshots_db.h"
#include "node/journal/tombstones_db.h"

struct jobs { /* in the order asked */
	struct journal_job *first, **last;
};

struct journal {
	struct watch rung;
	int bell;
	size_t n_jobs, n_searches; /* not told yet */
	struct jobs told;
	bool telling, closed;
	char failure[JOURNAL_FAILURE_MAX];
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;
	struct jobs asked, done;
	bool stop;
	bool reserved; /* since the last write it was looked whether there is a reserve */
	pthread_mutex_t db_lock;
	struct journal_db *db;
	int sandboxes, snapshots; /* where rows are described; -1: nowhere */
};

static void jobs_add(struct jobs *q, struct journal_job *job)
{
	job->next = NULL;
	*q->last = job;
	q->last = &job->next;
}

/* All of `from` goes to the end of `to`. */
static void jobs_move(struct jobs *to, struct jobs *from)
{
	if (!from->first)
		return;
	*to->last = from->first;
	to->last = from->last;
	*from = (struct jobs){ .last = &from->first };
}

static bool is_search(const struct journal_job *job)
{
	return job->kind == JOB_FIND || job->kind == JOB_LIST;
}

void journal_job_free(struct journal_job *job)
{
	free(job->row.text);
	free(job->row.known);
	free(job->snapshot.known);
	free(job->found);
	free(job);
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
	return 0;
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
		return journal_db_find_ended(j->db, t->team, t->id, job->found, &job->n_found, err);
	case JOB_LIST:
		return journal_db_list_ended(j->db, t->team, t->ended_ns, t->id, job->found,
					     job->max, &job->n_found, err);
	case JOB_PRUNE:
		return journal_db_prune(j->db, t->ended_ns, TOMBSTONES_SLICE, &job->n_found, err);
	case JOB_PUT_SNAPSHOT:
		return journal_db_put_snapshot(j->db, &job->snapshot, err);
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
	if (rc == 0)
		rc = journal_db_commit(j->db, &err);
	if (rc < 0)
		journal_db_rollback(j->db);
	return rc;
}

static void try_one(struct journal *j, struct journal_job *job)
{
	job->rc = journal_db_begin(j->db, job->durable, &job->err);
	if (job->rc == 0)
		job->rc = do_job(j, job, &job->err);
	if (job->rc == 0)
		job->rc = journal_db_commit(j->db, &job->err);
	if (job->rc < 0)
		journal_db_rollback(j->db);
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

		jobs_move(&batch, &j->asked);
		pthread_mutex_unlock(&j->lock);
		write_batch(j, batch.first);
		pthread_mutex_lock(&j->lock);
		j->reserved = false;
		jobs_move(&j->done, &batch);
		ring(j);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

const char *journal_failure(const struct journal *j)
{
	return j->failure;
}

static void tell(struct journal_job *job)
{
	struct journal_write *w = job->write;

	if (!w)
		return;
	w->journal = NULL;
	w->job = NULL;
	if (!is_search(job)) {
		w->on_done(w, job->rc < 0 ? &job->err : NULL);
	} else {
		struct journal_search *s = CONTAINER_OF(w, struct journal_search, write);

		s->on_found(s, job->found, job->rc < 0 ? 0 : job->n_found,
			    job->rc < 0 ? &job->err : NULL);
	}
}

static void journal_free(struct journal *j)
{
	auto_close(&j->sandboxes);
	auto_close(&j->snapshots);
	while (j->told.first) {
		struct journal_job *job = j->told.first;

		j->told.first = job->next;
		journal_job_free(job);
	}
	free(j);
}

static void on_rung(struct watch *rung, unsigned int events)
{
	struct journal *j = CONTAINER_OF(rung, struct journal, rung);
	uint64_t times;

	(void)events;
	(void)!read(j->bell, &times, sizeof(times));
	pthread_mutex_lock(&j->lock);
	jobs_move(&j->told, &j->done);
	pthread_mutex_unlock(&j->lock);
	j->telling = true;
	while (!j->closed && j->told.first) {
		struct journal_job *job = j->told.first;

		j->told.first = job->next;
		if (!j->told.first)
			j->told.last = &j->told.first;
		j->n_jobs--;
		j->n_searches -= is_search(job);
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

int journal_ask(struct journal *j, struct journal_job *job, struct journal_write *w,
		void (*on_done)(struct journal_write *w, const struct err *err))
{
	assert(!w->journal && !j->closed);
	*w = (struct journal_write){ .on_done = on_done, .journal = j, .job = job };
	job->write = w;
	j->n_jobs++;
	j->n_searches += is_search(job);
	pthread_mutex_lock(&j->lock);
	jobs_add(&j->asked, job);
	pthread_cond_signal(&j->more);
	pthread_mutex_unlock(&j->lock);
	return 0;
}

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

int journal_put(struct journal *j, struct journal_write *w, const struct journal_row *row,
		bool durable, void (*on_done)(struct journal_write *w, const struct err *err),
		struct err *err)
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
		   void (*on_done)(struct journal_write *w, const struct err *err), struct err *err)
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
	int rc;

	pthread_mutex_lock(&j->db_lock);
	rc = journal_db_each(j->db, each, odd, context, err);
	pthread_mutex_unlock(&j->db_lock);
	return rc;
}

int journal_each_snapshot(struct journal *j, journal_each_snapshot_fn *each, journal_odd_fn *odd,
			  void *context, struct err *err)
{
	int rc;

	pthread_mutex_lock(&j->db_lock);
	rc = journal_db_each_snapshot(j->db, each, odd, context, err);
	pthread_mutex_unlock(&j->db_lock);
	return rc;
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

size_t journal_searching(const struct journal *j)
{
	return j->n_searches;
}

/* Signals are the loop's: the thread has none. */
static int start_thread(struct journal *j, struct err *err)
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

int journal_open(struct loop *l, const char *path, struct journal **ret, struct err *err)
{
	struct journal *j = calloc(1, sizeof(*j));

	if (!j)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate the journal");
	j->sandboxes = j->snapshots = -1;
	j->asked.last = &j->asked.first;
	j->done.last = &j->done.first;
	j->told.last = &j->told.first;
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
	    start_thread(j, err) < 0)
		return open_failed(j);
	*ret = j;
	return 0;
}

void journal_close(struct journal *j)
{
	if (!j)
		return;
	pthread_mutex_lock(&j->lock);
	j->stop = true;
	pthread_cond_signal(&j->more);
	pthread_mutex_unlock(&j->lock);
	pthread_join(j->thread, NULL);
	jobs_move(&j->told, &j->done);
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
