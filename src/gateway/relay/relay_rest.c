/* relay_rest.c - the relayed requests, in the order in which something last moved in them. They may
 * rest for as long as they like, unless others need their place.
 */
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

void relay_enter(struct relay *r)
{
	r->entered = true;
	r->moved_ms = loop_now_ms(r->g->loop);
	add(&r->g->relays, r);
	r->g->relays.n++;
}

void relay_leave(struct relay *r)
{
	if (!r->entered)
		return;
	r->entered = false;
	take_out(&r->g->relays, r);
	r->g->relays.n--;
}

void relay_moved(struct relay *r)
{
	r->moved_ms = loop_now_ms(r->g->loop);
	if (!r->newer)
		return;
	take_out(&r->g->relays, r);
	add(&r->g->relays, r);
}

bool relay_shed(struct gateway *g)
{
	struct relay *r = g->relays.oldest;

	if (!r || loop_now_ms(g->loop) - r->moved_ms < RELAY_REST_MS)
		return false;
	relay_end(r);
	return true;
}
