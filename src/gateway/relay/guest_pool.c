/* guest_pool.c - connections into one sandbox that wait for the next request to the same port. */
#include "gateway/relay/guest_pool.h"

static struct http_client *remove_at(struct guest *g, size_t i)
{
	struct http_client *c = g->pool[i].client;

	g->n_pool--;
	for (; i < g->n_pool; i++)
		g->pool[i] = g->pool[i + 1];
	g->cache->n_held--;
	return c;
}

/* Closes what is over, and wakes when the next one is. */
static void on_pool_due(struct timer *t)
{
	struct guest *g = CONTAINER_OF(t, struct guest, pool_due);
	uint64_t now_ms = loop_now_ms(g->cache->gateway->loop), next_ms = UINT64_MAX;

	for (size_t i = g->n_pool; i-- > 0;) {
		const struct guest_pooled *p = &g->pool[i];

		if (p->until_ms <= now_ms || !http_client_ready(p->client))
			http_client_close(remove_at(g, i));
		else if (p->until_ms < next_ms)
			next_ms = p->until_ms;
	}
	if (g->n_pool > 0)
		timer_start(&g->pool_due, next_ms - now_ms);
	else
		guest_pool_drop(g);
}

void guest_pool_init(struct guest *g)
{
	timer_init(&g->pool_due, g->cache->gateway->loop, on_pool_due);
}

struct http_client *guest_pool_take(struct guest *g, uint16_t port, uint64_t *ret_since_ms)
{
	for (size_t i = g->known ? g->n_pool : 0; i-- > 0;) { /* the newest is the warmest */
		struct http_client *c;

		if (g->pool[i].port != port)
			continue;
		*ret_since_ms = g->pool[i].since_ms;
		c = remove_at(g, i);
		if (http_client_ready(c))
			return c;
		http_client_close(c); /* the other side closed it meanwhile */
	}
	return NULL;
}

/* The array grows with those that are kept, and goes with the last. */
static bool has_room(struct guest *g)
{
	size_t room = g->room_pool > 0 ? 2 * g->room_pool : GUEST_POOL_MAX / 64;
	struct guest_pooled *pool;

	if (g->n_pool < g->room_pool)
		return true;
	if (room > GUEST_POOL_MAX)
		return false;
	pool = reallocarray(g->pool, room, sizeof(*pool));
	if (!pool)
		return false;
	g->pool = pool;
	g->room_pool = room;
	return true;
}

/* How long it may wait for its next request. */
static uint64_t patience_ms(const struct guest *g, const struct guest_pooled *p, uint64_t now_ms)
{
	uint64_t age_ms = now_ms - p->since_ms, left_ms;

	if (p->port == g->cache->agent_port)
		return GUEST_POOL_MS;
	left_ms = age_ms < GUEST_POOL_LIFE_MS ? GUEST_POOL_LIFE_MS - age_ms : 0;
	return left_ms < GUEST_POOL_SERVICE_MS ? left_ms : GUEST_POOL_SERVICE_MS;
}

void guest_pool_put(struct guest *g, const struct guest_pooled *p)
{
	uint64_t now_ms = loop_now_ms(g->cache->gateway->loop), ms = patience_ms(g, p, now_ms);

	if (!g->known || ms == 0 || !http_client_ready(p->client) ||
	    !guest_cache_room(g->cache, 1) || !has_room(g)) {
		http_client_close(p->client);
		return;
	}
	g->cache->n_held++;
	g->pool[g->n_pool] = *p;
	g->pool[g->n_pool++].until_ms = now_ms + ms;
	if (!g->pool_due.active || g->pool_due.at_ms > now_ms + ms)
		timer_start(&g->pool_due, ms);
}

void guest_pool_drop(struct guest *g)
{
	while (g->n_pool > 0)
		http_client_close(remove_at(g, g->n_pool - 1));
	timer_stop(&g->pool_due);
	free(g->pool);
	g->pool = NULL;
	g->room_pool = 0;
}
