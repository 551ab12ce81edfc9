/* crew.c - one thread that waits for a task, takes units beside the caller, and waits again. */
/* #syscalls: clone set_robust_list rseq rt_sigprocmask sched_getaffinity futex mmap mprotect munmap
 */
#include "copier/crew.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

struct crew {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct crew_task *task; /* NULL: none for the second */
	_Atomic uint64_t next;
	uint64_t units;
	struct err failed[CREW_MEMBERS];
};

/* Until there is none left; the other one's failure ends it, too. */
static void take_units(struct crew *c, struct crew_task *t, unsigned int member)
{
	uint64_t unit;

	while ((unit = atomic_fetch_add(&c->next, 1)) < c->units)
		if (t->run(t, member, unit, &c->failed[member]) < 0) {
			atomic_store(&c->next, c->units);
			return;
		}
}

static void *second(void *arg)
{
	struct crew *c = arg;

	for (;;) {
		struct crew_task *t;

		pthread_mutex_lock(&c->lock);
		while (!c->task)
			pthread_cond_wait(&c->changed, &c->lock);
		t = c->task;
		pthread_mutex_unlock(&c->lock);
		take_units(c, t, 1);
		pthread_mutex_lock(&c->lock);
		c->task = NULL;
		pthread_cond_signal(&c->changed);
		pthread_mutex_unlock(&c->lock);
	}
	return NULL;
}

struct crew *crew_start(void)
{
	struct crew *c = calloc(1, sizeof(*c));
	sigset_t all, before;
	pthread_t thread;
	int rc;

	if (!c)
		return NULL;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the first thread's */
	rc = pthread_create(&thread, NULL, second, c);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0) {
		pthread_detach(thread);
		return c;
	}
	free(c);
	return NULL;
}

static int alone(struct crew_task *t, uint64_t units, struct err *err)
{
	for (uint64_t i = 0; i < units; i++)
		if (t->run(t, 0, i, err) < 0)
			return -1;
	return 0;
}

int crew_run(struct crew *c, struct crew_task *t, uint64_t units, struct err *err)
{
	if (!c || units < CREW_MEMBERS)
		return alone(t, units, err);
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < CREW_MEMBERS; i++)
		c->failed[i] = (struct err){ 0 };
	atomic_store(&c->next, 0);
	c->units = units;
	c->task = t;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
	take_units(c, t, 0);
	pthread_mutex_lock(&c->lock);
	while (c->task)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < CREW_MEMBERS; i++)
		if (c->failed[i].code != ERR_NONE) {
			*err = c->failed[i];
			return -1;
		}
	return 0;
}
