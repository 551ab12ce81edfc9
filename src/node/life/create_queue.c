/* create_queue.c - whose turn it is.
 *
 * The queue is sorted by rounds; in each round a key has one create. A key that was served in the
 * round of now comes in the next one, so that one that asks again and again, one at a time, does
 * not stay ahead of one that asked for many.
 */
#include "node/life/create_queue.h"

#include "base/hash.h"
#include "base/list.h"
#include "node/life/pools.h"

/* One that names no key stands for its team. */
static const char *line_of(const struct create *c)
{
	return c->key_id[0] ? c->key_id : c->team;
}

static bool same_line(const struct create *a, const struct create *b)
{
	return strcmp(line_of(a), line_of(b)) == 0;
}

/* Two keys with the same hash only wait a round longer. */
static bool was_served(const struct creates *q, const struct create *c)
{
	uint32_t h = hash_text(HASH_START, line_of(c));

	for (size_t i = 0; i < q->n_served; i++)
		if (q->served[i] == h)
			return true;
	return false;
}

void creates_enqueue(struct creates *q, struct create *c, bool first)
{
	struct create **at = &q->first;

	if (!first) {
		c->round = q->round + was_served(q, c);
		for (const struct create *o = q->first; o; o = o->next)
			if (same_line(o, c) && o->round >= c->round)
				c->round = o->round + 1;
		while (*at && (*at)->round <= c->round)
			at = &(*at)->next;
	}
	list_add(at, c);
	q->n++;
	if (c->pool)
		c->pool->waiting++;
}

void creates_dequeue(struct creates *q, struct create *c)
{
	if (!c->prev)
		return;
	list_remove(c);
	q->n--;
	if (c->pool)
		c->pool->waiting--;
}

void creates_take(struct creates *q, struct create *c)
{
	creates_dequeue(q, c);
	if (c->round > q->round || q->n_served == CREATES_SERVED_MAX) {
		q->round = c->round > q->round ? c->round : q->round + 1;
		q->n_served = 0;
	}
	q->served[q->n_served++] = hash_text(HASH_START, line_of(c));
}

size_t creates_waiting(const struct creates *q, const struct create *like)
{
	size_t n = 0;

	for (const struct create *o = q->first; o; o = o->next)
		n += same_line(o, like);
	return n;
}
