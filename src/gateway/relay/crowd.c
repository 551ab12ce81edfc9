/* crowd.c - see crowd.h. */
#include "gateway/relay/crowd.h"

#include <assert.h>

#include "base/log.h"
#include "gateway/relay/relays.h"
#include "http/refuse.h"
#include "http/server.h"

static size_t reserve(const struct crowd *c)
{
	return c->connections_max / CROWD_RESERVE;
}

static size_t alive(const struct crowd *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_doors; i++)
		n += listener_alive(c->doors[i]);
	return n;
}

bool crowd_is_full(const struct crowd *c)
{
	return alive(c) > c->connections_max;
}

static bool is_crowded(const struct crowd *c)
{
	return alive(c) > c->connections_max - reserve(c) / 2;
}

static void say(struct crowd *c)
{
	uint64_t now_ms = loop_now_ms(c->g->loop);

	if (c->said_ms != 0 && now_ms - c->said_ms < CROWD_SAY_MS)
		return;
	c->said_ms = now_ms;
	log_warn("%zu of connections_max = %zu are taken: those that are idle the longest are "
		 "closed",
		 alive(c), c->connections_max);
}

void crowd_look(struct crowd *c)
{
	if (!is_crowded(c))
		return;
	say(c);
	while (is_crowded(c) && (http_server_shed(c->http, CROWD_GRACE_MS) || relays_shed(c->g)))
		;
	if (is_crowded(c)) /* some may begin to wait while nobody comes in */
		timer_start(&c->again, CROWD_LOOK_MS);
}

static void on_again(struct timer *t)
{
	crowd_look(CONTAINER_OF(t, struct crowd, again));
}

void crowd_refuse(struct crowd *c, struct stream *s)
{
	if (alive(c) > c->connections_max / 2)
		stream_abort(s);
	else
		http_refuse(s, 429,
			    "too many connections from one address: close some, or ask the "
			    "operator to raise address_connections_max");
}

void crowd_open(struct crowd *c, struct gateway *g, struct listener *door, struct http_server *http)
{
	c->g = g;
	c->http = http;
	g->relays.max = c->connections_max - reserve(c);
	timer_init(&c->again, g->loop, on_again);
	c->n_doors = 0;
	crowd_add(c, door);
}

void crowd_add(struct crowd *c, struct listener *door)
{
	assert(c->n_doors < CROWD_DOORS_MAX);
	c->doors[c->n_doors++] = door;
}

void crowd_close(struct crowd *c)
{
	timer_stop(&c->again);
}
