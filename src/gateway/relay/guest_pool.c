/* guest_pool.c - connections to the agent of one sandbox that wait for the next request. */
#include "gateway/relay/guest_pool.h"

struct http_client *guest_pool_take(struct guest *g)
{
	while (g->known && g->n_pool > 0) {
		struct http_client *c = g->pool[--g->n_pool].client; /* the newest is the warmest */

		g->cache->n_held--;
		if (http_client_ready(c))
			return c;
		http_client_close(c); /* the agent closed it meanwhile */
	}
	return NULL;
}

void guest_pool_put(struct guest *g, struct http_client *client)
{
	if (!g->known || g->n_pool == GUEST_POOL_MAX || !http_client_ready(client) ||
	    !guest_cache_room(g->cache, 1)) {
		http_client_close(client);
		return;
	}
	g->cache->n_held++;
	g->pool[g->n_pool++] = (struct guest_pooled){
		.client = client,
		.since_ms = loop_now_ms(g->cache->gateway->loop),
	};
}

void guest_pool_expire(struct guest *g, uint64_t before_ms)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->n_pool; i++) {
		if (g->pool[i].since_ms < before_ms || !http_client_ready(g->pool[i].client))
			http_client_close(g->pool[i].client);
		else
			g->pool[kept++] = g->pool[i];
	}
	g->cache->n_held -= g->n_pool - kept;
	g->n_pool = kept;
}
