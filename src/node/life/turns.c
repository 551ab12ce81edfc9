/* turns.c - a count and a queue. */
#include "node/life/turns.h"

#include <assert.h>

#include "base/list.h"

static void unlink_turn(struct turn *t)
{
	struct turns *s = t->turns;

	queue_remove(s, t);
	s->n_waiting--;
}

static void on_give(struct timer *timer)
{
	struct turns *s = CONTAINER_OF(timer, struct turns, give);

	while (s->first && s->n < s->max) {
		struct turn *t = s->first;

		unlink_turn(t);
		t->has = true;
		s->n++;
		t->on_turn(t);
	}
}

void turns_open(struct turns *s, struct loop *l, size_t max)
{
	*s = (struct turns){ .max = max };
	queue_init(s);
	timer_init(&s->give, l, on_give);
}

void turns_close(struct turns *s)
{
	timer_stop(&s->give);
}

void turn_take(struct turns *s, struct turn *t, turn_fn *on_turn)
{
	assert(!t->turns);
	*t = (struct turn){ .on_turn = on_turn, .turns = s };
	queue_add(s, t);
	s->n_waiting++;
	timer_start(&s->give, 0);
}

void turn_leave(struct turn *t)
{
	struct turns *s = t->turns;

	if (!s)
		return;
	if (t->has)
		s->n--;
	else
		unlink_turn(t);
	*t = (struct turn){ 0 };
	if (s->first)
		timer_start(&s->give, 0);
}
