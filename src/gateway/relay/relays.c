/* relays.c - see relays.h. */
#include "gateway/relay/relays.h"

#include "gateway/relay/relay.h"

static void add(struct relays *all, struct relay *r)
{
	r->older = all->newest;
	r->newer = NULL;
	*(r->older ? &r->older->newer : &all->oldest) = r;
	all->newest = r;
}

static void take_out(struct relays *all, struct relay *r)
{
	*(r->newer ? &r->newer->older : &all->newest) = r->older;
	*(r->older ? &r->older->newer : &all->oldest) = r->newer;
}

void relays_add(struct relay *r)
{
	r->entered = true;
	r->moved_ms = loop_now_ms(r->g->loop);
	add(&r->g->relays, r);
	r->g->relays.n++;
}

bool relays_count(struct relay *r)
{
	struct relays *all = &r->g->relays;
	const struct addr *who = http_request_peer(r->rq);

	if (all->address_max == 0 || !who || addr_is_local(who) || http_request_unnamed(r->rq))
		return true;
	r->of = address_counts_add(&all->of_addresses, who);
	return r->of && r->of->n <= all->address_max;
}

void relays_remove(struct relay *r)
{
	address_count_drop(TAKE(r->of));
	if (!r->entered)
		return;
	r->entered = false;
	take_out(&r->g->relays, r);
	r->g->relays.n--;
}

void relays_moved(struct relay *r)
{
	r->moved_ms = loop_now_ms(r->g->loop);
	if (!r->newer)
		return;
	take_out(&r->g->relays, r);
	add(&r->g->relays, r);
}

bool relays_shed(struct gateway *g)
{
	struct relay *r = g->relays.oldest;

	if (!r || loop_now_ms(g->loop) - r->moved_ms < RELAY_REST_MS)
		return false;
	relay_end(r);
	return true;
}

void relays_cut(struct gateway *g)
{
	while (g->relays.oldest)
		relay_cut(g->relays.oldest);
}
