/* store.c - the queue, the thread that works it off, and the way back to the loop. */
/* #syscalls: clone set_robust_list rseq eventfd2 read write */
#include "store/store.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/list.h"
#include "store/statements.h"

struct store_job { /* queue: the loop's, then the thread's; done: the loop's again */
	struct store_job *next, **prev;
	struct store_call *call; /* loop only; NULL: forgotten */
	struct store_request rq;
	struct store_rows rows;
	int rc;
	struct err err;
};

struct jobs { /* first in, first out */
	struct store_job *first, **last;
};

struct store {
	struct database db; /* the thread's while it runs */
	pthread_t thread;
	pthread_mutex_t lock; /* guards the next four */
	pthread_cond_t wake;
	struct jobs queue, done;
	bool stop;
	int bell; /* rung by the thread: something is done */
	struct watch rung;
	size_t n_jobs; /* loop only: in queue, at work or done */
};

static void job_free(struct store_job *job)
{
	store_rows_done(&job->rows);
	store_secret_free(job->rq.secret);
	free(job);
}

/* NULL: the store is being closed. */
static struct store_job *wait_for_job(struct store *s)
{
	struct store_job *job = NULL;

	pthread_mutex_lock(&s->lock);
	while (!s->stop && !s->queue.first)
		pthread_cond_wait(&s->wake, &s->lock);
	if (!s->stop)
		job = queue_take(&s->queue);
	pthread_mutex_unlock(&s->lock);
	return job;
}

static void *thread_main(void *arg)
{
	struct store *s = arg;
	struct store_job *job;
	uint64_t one = 1;

	while ((job = wait_for_job(s)) != NULL) {
		job->rc = statements_run(&s->db, &job->rq, &job->rows, &job->err);
		pthread_mutex_lock(&s->lock);
		queue_add(&s->done, job);
		pthread_mutex_unlock(&s->lock);
		/* fails only when the counter is full, and then the bell is ringing */
		(void)!write(s->bell, &one, sizeof(one));
	}
	return NULL;
}

static void tell(struct store_job *job)
{
	struct store_result result = { job->rows.teams,  job->rows.n_teams, job->rows.keys,
				       job->rows.n_keys, job->rows.secrets, job->rows.n_secrets };
	struct store_call *c = job->call;

	if (!c)
		return;
	c->job = NULL;
	if (job->rc < 0)
		c->on_done(c, NULL, &job->err);
	else
		c->on_done(c, &result, NULL);
}

/* One answer for each turn: a callback may close the store, after which nothing here exists. */
static void on_rung(struct watch *w, unsigned int events)
{
	struct store *s = CONTAINER_OF(w, struct store, rung);
	struct store_job *job;
	uint64_t n;

	(void)events;
	pthread_mutex_lock(&s->lock);
	job = queue_take(&s->done);
	if (!s->done.first)
		(void)!read(s->bell, &n, sizeof(n));
	pthread_mutex_unlock(&s->lock);
	if (!job)
		return;
	s->n_jobs--;
	tell(job);
	job_free(job);
}

int store_ask(struct store *s, struct store_call *c, const struct store_request *rq,
	      store_done_fn *on_done, struct err *err)
{
	struct store_job *job;

	assert(!c->job && rq->verb < STORE_VERBS);
	job = s->n_jobs < STORE_QUEUE_MAX ? calloc(1, sizeof(*job)) : NULL;
	if (!job) {
		store_secret_free(rq->secret);
		return err_set(err, ERR_EXHAUSTED, 0, "the database is busy");
	}
	job->rq = *rq;
	job->call = c;
	*c = (struct store_call){ .on_done = on_done, .job = job };
	s->n_jobs++;
	pthread_mutex_lock(&s->lock);
	queue_add(&s->queue, job);
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

void store_forget(struct store_call *c)
{
	if (c->job)
		c->job->call = NULL;
	c->job = NULL;
}

/* Signals are the loop's: the thread has none. */
static int start_thread(struct store *s, struct err *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->thread, NULL, thread_main, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc == 0 ? 0 : err_set(err, ERR_EXHAUSTED, rc, "start a thread");
}

static void free_store(struct store *s)
{
	struct store_job *job;

	while ((job = queue_take(&s->queue)) || (job = queue_take(&s->done))) {
		if (job->call)
			job->call->job = NULL;
		job_free(job);
	}
	watch_close(&s->rung);
	if (s->bell >= 0)
		close(s->bell);
	if (s->db.handle)
		database_close(&s->db);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int set_up(struct store *s, struct loop *l, const char *dir, struct err *err)
{
	char path[512];

	if (snprintf(path, sizeof(path), "%s/store.db", dir) >= (int)sizeof(path))
		return err_set(err, ERR_INVALID, 0, "the path of the database is too long");
	s->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->bell < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make an eventfd");
	if (database_open(&s->db, path, err) < 0 ||
	    watch_open(&s->rung, l, s->bell, WATCH_READ, on_rung, err) < 0)
		return -1;
	return start_thread(s, err);
}

int store_open(struct loop *l, const char *dir, struct store **ret, struct err *err)
{
	struct store *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory for the store");
	queue_init(&s->queue);
	queue_init(&s->done);
	s->bell = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wake, NULL);
	if (set_up(s, l, dir, err) < 0) {
		free_store(s);
		return -1;
	}
	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	free_store(s);
}
