/* test_vm_work.c - what blocks on a thread, what is told on the loop, and in which order. */
#include "tests/unit/check.h"

#include <semaphore.h>
#include <stdlib.h>

#include "net/loop.h"
#include "net/timer.h"
#include "vm/work.h"

enum { TURNS_MAX = 10000 };

struct scene { /* outlives the job */
	struct loop *loop;
	struct timer alive; /* the loop has something to wait for */
	sem_t go, freed;
	int done, ended;
	bool failed;
};

struct job {
	struct work work;
	struct scene *scene;
	bool fails;
};

static struct job *of(struct work *w)
{
	return CONTAINER_OF(w, struct job, work);
}

static int run(struct work *w, struct err *err)
{
	return of(w)->fails ? err_set(err, ERR_INTERNAL, 0, "as asked") : 0;
}

/* As long as the blocks of a large file take: until the test lets it. */
static void after(struct work *w)
{
	sem_wait(&of(w)->scene->go);
}

static void on_done(struct work *w, const struct err *err)
{
	of(w)->scene->done++;
	of(w)->scene->failed = err;
}

static void on_end(struct work *w)
{
	assert_int_equal(of(w)->scene->done, 1);
	of(w)->scene->ended++;
}

static void free_job(struct work *w)
{
	sem_post(&of(w)->scene->freed);
	free(of(w));
}

static void on_alive(struct timer *t)
{
	(void)t;
}

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct err err;

	assert_non_null(s);
	assert_int_equal(loop_open(&s->loop, &err), 0);
	timer_init(&s->alive, s->loop, on_alive);
	timer_repeat(&s->alive, 5);
	sem_init(&s->go, 0, 0);
	sem_init(&s->freed, 0, 0);
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	sem_wait(&s->freed); /* by whoever let go last */
	timer_stop(&s->alive);
	loop_free(s->loop);
	free(s);
	return 0;
}

static struct job *start(struct scene *s, bool with_after, bool fails)
{
	struct job *j = calloc(1, sizeof(*j));
	struct err err;

	assert_non_null(j);
	j->scene = s;
	j->fails = fails;
	j->work.run = run;
	j->work.on_done = on_done;
	j->work.free = free_job;
	if (with_after) {
		j->work.after = after;
		j->work.on_end = on_end;
	}
	assert_int_equal(work_start(&j->work, s->loop, &err), 0);
	return j;
}

static void wait_for(struct scene *s, const int *what)
{
	for (int i = 0; i < TURNS_MAX && !*what; i++)
		assert_true(loop_turn(s->loop));
	assert_int_equal(*what, 1);
}

static void a_job_is_done_once(void **state)
{
	struct scene *s = *state;

	start(s, false, true);
	wait_for(s, &s->done);
	assert_true(s->failed);
	for (int i = 0; i < 3; i++)
		assert_true(loop_turn(s->loop));
	assert_true(s->done == 1 && s->ended == 0);
}

static void nobody_waits_for_what_comes_after(void **state)
{
	struct scene *s = *state;

	start(s, true, false);
	wait_for(s, &s->done); /* while its thread stands still */
	assert_true(!s->failed && s->ended == 0);
	sem_post(&s->go);
	wait_for(s, &s->ended);
	assert_int_equal(s->done, 1);
}

/* Both bells before the loop looks: nothing is lost. */
static void both_ends_at_once(void **state)
{
	struct scene *s = *state;

	sem_post(&s->go);
	start(s, true, true);
	wait_for(s, &s->ended);
	assert_true(s->done == 1 && s->failed);
}

static void an_owner_may_go_in_between(void **state)
{
	struct scene *s = *state;
	struct job *j = start(s, true, false);

	wait_for(s, &s->done);
	work_cancel(&j->work);
	sem_post(&s->go);
	for (int i = 0; i < 3; i++)
		assert_true(loop_turn(s->loop));
	assert_int_equal(s->ended, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(a_job_is_done_once),
		T(nobody_waits_for_what_comes_after),
		T(both_ends_at_once),
		T(an_owner_may_go_in_between),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
