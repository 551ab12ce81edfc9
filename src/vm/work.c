/* work.c - a detached thread and an eventfd. */
/* A thread, from start to end. */
/* #syscalls: clone set_robust_list rseq rt_sigprocmask sched_getaffinity eventfd2 read write close
 */
#include "vm/work.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

static void let_go(struct work *w)
{
	if (atomic_fetch_sub(&w->holders, 1) > 1)
		return;
	if (w->bell >= 0)
		close(w->bell);
	w->free(w);
}

/* Cannot fail: the counter is small and the descriptor is ours until both let go. */
static void ring(const struct work *w)
{
	uint64_t one = 1;

	(void)!write(w->bell, &one, sizeof(one));
}

static void *thread_main(void *arg)
{
	struct work *w = arg;

	w->rc = w->run(w, &w->err);
	ring(w);
	if (w->after) {
		w->after(w);
		ring(w);
	}
	let_go(w);
	return NULL;
}

static void on_rung(struct watch *rung, unsigned int events)
{
	struct work *w = CONTAINER_OF(rung, struct work, rung);
	bool first = w->rung_times == 0, last;
	uint64_t times;

	(void)events;
	if (read(w->bell, &times, sizeof(times)) != sizeof(times))
		return;
	w->rung_times += times;
	last = w->rung_times == (w->after ? 2 : 1);
	if (last)
		watch_close(&w->rung);
	if (first)
		w->on_done(w, w->rc < 0 ? &w->err : NULL);
	if (last && w->after)
		w->on_end(w);
	if (last)
		let_go(w);
}

void work_cancel(struct work *w)
{
	atomic_store(&w->stop, true);
	watch_close(&w->rung);
	let_go(w);
}

/* Signals are the loop's: the thread has none. */
static int start_thread(struct work *w, struct err *err)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_attr_init(&attr);
	assert(rc == 0);
	rc = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	assert(rc == 0);
	rc = pthread_create(&thread, &attr, thread_main, w);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return err_set(err, ERR_EXHAUSTED, rc, "start a thread");
	return 0;
}

int work_start(struct work *w, struct loop *l, struct err *err)
{
	atomic_init(&w->stop, false);
	atomic_init(&w->holders, 1);
	w->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->bell < 0) {
		err_set(err, ERR_EXHAUSTED, errno, "make an eventfd");
		let_go(w);
		return -1;
	}
	if (watch_open(&w->rung, l, w->bell, WATCH_READ, on_rung, err) < 0) {
		let_go(w);
		return -1;
	}
	atomic_fetch_add(&w->holders, 1);
	if (start_thread(w, err) < 0) {
		watch_close(&w->rung);
		atomic_fetch_sub(&w->holders, 1);
		let_go(w);
		return -1;
	}
	return 0;
}
