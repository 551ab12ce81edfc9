/* history.c - rings of points, and the mean of several. */
#include "node/record/history.h"

#include "base/own.h"

static void mean_add(struct history_mean *m, const struct history_point *p)
{
	m->cpu += p->cpu_percent;
	m->memory += p->memory_kib;
	m->cache += p->cache_kib;
	m->last = *p;
	m->n++;
}

/* Time and disk are those of the last. */
static struct history_point mean_take(struct history_mean *m)
{
	struct history_point p = m->last;

	p.cpu_percent = (uint32_t)(m->cpu / m->n);
	p.memory_kib = (uint32_t)(m->memory / m->n);
	p.cache_kib = (uint32_t)(m->cache / m->n);
	*m = (struct history_mean){ 0 };
	return p;
}

static bool grow(struct history_ring *r, uint32_t max)
{
	uint32_t cap = r->cap ? 2 * r->cap : HISTORY_GROW;
	struct history_point *at;

	if (r->n < r->cap || r->cap == max)
		return r->cap > 0;
	if (cap > max)
		cap = max;
	at = reallocarray(r->at, cap, sizeof(*at));
	if (!at)
		return false;
	r->at = at; /* it was never full before, so it begins at 0 */
	r->cap = cap;
	return true;
}

static void ring_add(struct history_ring *r, const struct history_point *p, uint32_t max)
{
	if (!grow(r, max))
		return;
	r->at[(r->first + r->n) % r->cap] = *p;
	if (r->n < r->cap)
		r->n++;
	else
		r->first = (r->first + 1) % r->cap;
}

static const struct history_point *ring_at(const struct history_ring *r, uint32_t i)
{
	return &r->at[(r->first + i) % r->cap];
}

void history_add(struct history *h, const struct history_point *p)
{
	struct history_mean *m = &h->minute;

	if (m->n > 0 && p->time_s / HISTORY_COARSE_S != m->last.time_s / HISTORY_COARSE_S) {
		struct history_point minute = mean_take(m);

		ring_add(&h->coarse, &minute, HISTORY_COARSE_MAX);
	}
	mean_add(m, p);
	ring_add(&h->fine, p, HISTORY_FINE_MAX);
}

bool history_latest(const struct history *h, struct history_point *ret)
{
	if (h->fine.n == 0)
		return false;
	*ret = *ring_at(&h->fine, h->fine.n - 1);
	return true;
}

void history_done(struct history *h)
{
	free(h->fine.at);
	free(h->coarse.at);
	*h = (struct history){ 0 };
}

struct pick {
	uint32_t after_s, until_s;
	const struct history *h;
};

/* The i-th of both rings: what is thin ends where what is dense begins. NULL: not wanted. */
static const struct history_point *wanted(const struct pick *k, uint32_t i)
{
	const struct history *h = k->h;
	bool coarse = i < h->coarse.n;
	const struct history_point *p =
		coarse ? ring_at(&h->coarse, i) : ring_at(&h->fine, i - h->coarse.n);

	if (coarse && h->fine.n > 0 && p->time_s >= ring_at(&h->fine, 0)->time_s)
		return NULL;
	return p->time_s >= k->after_s && p->time_s <= k->until_s ? p : NULL;
}

size_t history_get(const struct history *h, uint32_t after_s, uint32_t until_s,
		   struct history_point *ret, size_t max)
{
	const struct pick k = { after_s, until_s, h };
	uint32_t all = h->coarse.n + h->fine.n;
	struct history_mean m = { 0 };
	size_t n = 0, found = 0, step;

	for (uint32_t i = 0; i < all; i++)
		found += wanted(&k, i) != NULL;
	step = (found + max - 1) / max;
	for (uint32_t i = 0; i < all; i++) {
		const struct history_point *p = wanted(&k, i);

		if (p)
			mean_add(&m, p);
		if (m.n > 0 && m.n == step)
			ret[n++] = mean_take(&m);
	}
	if (m.n > 0 && n < max)
		ret[n++] = mean_take(&m);
	return n;
}
