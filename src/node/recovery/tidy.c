/* tidy.c - one folder at a time. */
#include "node/recovery/tidy.h"

#include "base/list.h"
#include "base/log.h"
#include "node/node.h"
#include "node/life/start.h"

void tidy_forget(struct sandbox *s)
{
	queue_remove_by(&s->node->tidy, s, tidy_next, tidy_prev);
}

void tidy_later(struct sandbox *s)
{
	struct tidy *t = &s->node->tidy;

	queue_add_by(t, s, tidy_next, tidy_prev);
	if (!t->call.job)
		timer_start(&t->turn, 0);
}

/* In a state of rest nobody else is at its files, or will be before what is asked for now. */
static bool rests(const struct sandbox *s, enum files_verb *ret)
{
	if (s->state == SANDBOX_RUNNING) {
		*ret = FILES_RUNS;
		/* a journal of before may say that it runs: then it was paused since */
		return s->seen > 0 && !s->pausing && !s->copying && !s->restarting;
	}
	*ret = FILES_PAUSED;
	return (s->state == SANDBOX_PAUSED || s->state == SANDBOX_PARKING) && !s->resuming;
}

/* NULL: none can be tidied now. */
static struct sandbox *take_next(struct tidy *t, enum files_verb *ret)
{
	for (size_t i = 0; t->first && i < TIDY_LOOKS; i++) {
		struct sandbox *s = t->first;

		tidy_forget(s);
		if (rests(s, ret))
			return s;
		if (s->state != SANDBOX_ENDING)
			queue_add_by(t, s, tidy_next, tidy_prev);
	}
	return NULL;
}

static void on_tidied(struct files_call *c, struct files_opened *got, const struct err *err)
{
	struct tidy *t = CONTAINER_OF(c, struct tidy, call);

	(void)got;
	if (err) /* the next node tries again */
		log_warn("tidy a folder: %s", err->msg);
	timer_start(&t->turn, 0);
}

static void on_turn(struct timer *timer)
{
	struct tidy *t = CONTAINER_OF(timer, struct tidy, turn);
	enum files_verb verb = FILES_PAUSED;
	struct sandbox *s = take_next(t, &verb);
	struct files_order o;
	struct err err;

	if (s) {
		sandbox_files_order(s, verb, &o);
		if (files_ask(s->node->files, &t->call, &o, on_tidied, &err) == 0)
			return;
		queue_add_by(t, s, tidy_next, tidy_prev);
	}
	if (t->first)
		timer_start(&t->turn, TIDY_AGAIN_MS);
}

void tidy_open(struct node *n)
{
	n->tidy = (struct tidy){ 0 };
	queue_init(&n->tidy);
	timer_init(&n->tidy.turn, n->loop, on_turn);
}

void tidy_close(struct node *n)
{
	timer_stop(&n->tidy.turn);
	files_cancel(&n->tidy.call);
}
