/* share.c - see share.h. */
#include "net/share.h"

#include "base/list.h"

enum { TURNS_MAX = 1 << 20 }; /* counted at once: no number overflows */

/* --- what there is -------------------------------------------------------------------------- */

static int64_t burst(const struct share *s)
{
	uint64_t n = s->bytes_per_s / 1000 * SHARE_BURST_MS;

	return (int64_t)(n > SHARE_OF_TURN ? n : SHARE_OF_TURN);
}

static int64_t at_most(int64_t n, int64_t max)
{
	return n < max ? n : max;
}

static void refill(struct share *s)
{
	uint64_t turns = loop_turns(s->loop) - s->turn, ms = loop_now_ms(s->loop) - s->at_ms;

	s->turn += turns;
	turns = turns < TURNS_MAX ? turns : TURNS_MAX;
	s->of_turn = at_most(s->of_turn + (int64_t)turns * SHARE_OF_TURN, SHARE_OF_TURN);
	if (s->bytes_per_s == 0 || ms == 0)
		return;
	s->at_ms += ms;
	ms = ms < 1000 ? ms : 1000;
	s->saved = at_most(s->saved + (int64_t)(s->bytes_per_s / 1000 * ms), burst(s));
}

static bool has_any(const struct share *s)
{
	return s->of_turn > 0 && (s->bytes_per_s == 0 || s->saved > 0);
}

/* --- the line ------------------------------------------------------------------------------- */

void share_leave(struct share_taker *t)
{
	if (!t->prev)
		return;
	queue_remove(t->share, t);
	if (!t->share->first)
		timer_stop(&t->share->again);
}

/* The debt of a turn is paid in turns, that of the rate in time. */
static void look_again(struct share *s)
{
	uint64_t ms = 0;

	if (s->bytes_per_s > 0 && s->saved <= 0)
		ms = (uint64_t)-s->saved * 1000 / s->bytes_per_s + 1;
	timer_start(&s->again, ms);
}

static void on_again(struct timer *timer)
{
	struct share *s = CONTAINER_OF(timer, struct share, again);
	struct share_taker *t;

	refill(s);
	for (int i = 0; i < SHARE_GO_MAX && s->first && has_any(s); i++) {
		t = s->first;
		share_leave(t);
		t->on_go(t);
	}
	if (s->first)
		look_again(s);
}

bool share_take(struct share *s, struct share_taker *t, size_t n)
{
	refill(s);
	s->of_turn -= (int64_t)(n > SHARE_LEAST ? n : SHARE_LEAST);
	if (s->bytes_per_s > 0)
		s->saved -= (int64_t)n;
	if (s->of_turn >= 0 && s->saved >= 0)
		return true;
	if (!s->first)
		look_again(s);
	if (!t->prev) {
		t->share = s;
		queue_add(s, t);
	}
	return false;
}

void share_open(struct share *s, struct loop *l, uint64_t bytes_per_s)
{
	*s = (struct share){ .loop = l, .bytes_per_s = bytes_per_s, .of_turn = SHARE_OF_TURN };
	queue_init(s);
	s->at_ms = loop_now_ms(l);
	s->turn = loop_turns(l);
	s->saved = burst(s);
	timer_init(&s->again, l, on_again);
}

void share_close(struct share *s)
{
	assert(!s->first);
	timer_stop(&s->again);
}
