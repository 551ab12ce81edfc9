/* timer.c - a pairing heap of timers: no allocation, so starting one cannot fail.
 *
 * Order is (time, sequence). While those due are fired, new ones get higher sequence numbers than
 * the first of the turn, so a timer that starts itself again with 0 waits for the next turn
 * instead of holding this one.
 */
#include "net/timer.h"

#include <assert.h>

#include "net/loop_inside.h"

static bool before(const struct timer *a, const struct timer *b)
{
	return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->seq < b->seq;
}

/* Both are roots, or NULL. */
static struct timer *heap_merge(struct timer *a, struct timer *b)
{
	struct timer *top = a, *low = b;

	if (!a || !b)
		return a ? a : b;
	if (before(b, a)) {
		top = b;
		low = a;
	}
	low->prev = top;
	low->next = top->child;
	if (low->next)
		low->next->prev = low;
	top->child = low;
	return top;
}

static struct timer *heap_detach(struct timer *t)
{
	struct timer *rest = t->next;

	t->next = NULL;
	t->prev = NULL;
	return rest;
}

/* One heap out of a list of siblings: pairs from the front, then the pairs from the back. */
static struct timer *heap_join(struct timer *list)
{
	struct timer *pairs = NULL, *top = NULL;

	while (list) {
		struct timer *a = list, *b = heap_detach(a);

		list = b ? heap_detach(b) : NULL;
		a = heap_merge(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct timer *a = pairs;

		pairs = heap_detach(a);
		top = heap_merge(top, a);
	}
	return top;
}

static void heap_remove(struct loop *l, struct timer *t)
{
	struct timer *kids = heap_join(t->child);

	if (t == l->top) {
		l->top = kids;
	} else {
		if (t->prev->child == t)
			t->prev->child = t->next;
		else
			t->prev->next = t->next;
		if (t->next)
			t->next->prev = t->prev;
		l->top = heap_merge(l->top, kids);
	}
	t->child = t->next = t->prev = NULL;
}

static void timers_fire(struct loop *l);

static void on_clock(uv_timer_t *t)
{
	timers_fire(CONTAINER_OF(t, struct loop, clock));
}

static void on_soon(uv_idle_t *i)
{
	timers_fire(CONTAINER_OF(i, struct loop, soon));
}

/* Which of the two handles runs is a function of the first timer. */
static void rearm(struct loop *l)
{
	uint64_t now = uv_now(&l->uv);

	if (l->top && l->top->at_ms <= now)
		(void)uv_idle_start(&l->soon, on_soon);
	else
		(void)uv_idle_stop(&l->soon);
	if (l->top && l->top->at_ms > now)
		(void)uv_timer_start(&l->clock, on_clock, l->top->at_ms - now, 0);
	else
		(void)uv_timer_stop(&l->clock);
}

static void insert(struct timer *t, uint64_t at_ms)
{
	struct loop *l = t->loop;

	t->at_ms = at_ms;
	t->seq = l->timer_seq++;
	t->active = true;
	l->top = heap_merge(l->top, t);
}

void timer_init(struct timer *t, struct loop *l, timer_fire_fn *on_fire)
{
	*t = (struct timer){ .loop = l, .on_fire = on_fire };
}

static void start(struct timer *t, uint64_t after_ms, uint64_t every_ms)
{
	struct loop *l = t->loop;
	uint64_t at;

	if (!l->running)
		uv_update_time(&l->uv);
	if (__builtin_add_overflow(uv_now(&l->uv), after_ms, &at))
		at = UINT64_MAX;
	if (t->active)
		heap_remove(l, t);
	t->every_ms = every_ms;
	insert(t, at);
	rearm(l);
}

void timer_start(struct timer *t, uint64_t after_ms)
{
	start(t, after_ms, 0);
}

void timer_repeat(struct timer *t, uint64_t every_ms)
{
	assert(every_ms > 0);
	start(t, every_ms, every_ms);
}

void timer_stop(struct timer *t)
{
	if (!t->active)
		return;
	heap_remove(t->loop, t);
	t->active = false;
	rearm(t->loop);
}

/* Those due now, in order. */
static void timers_fire(struct loop *l)
{
	uint64_t now = uv_now(&l->uv), end = l->timer_seq;

	while (l->top && l->top->at_ms <= now && l->top->seq < end) {
		struct timer *t = l->top;

		heap_remove(l, t);
		t->active = false;
		if (t->every_ms > 0)
			insert(t, now + t->every_ms);
		t->on_fire(t); /* t may be gone after this */
	}
	rearm(l);
}
