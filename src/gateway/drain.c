/* drain.c - see drain.h. */
#include "gateway/drain.h"

#include <assert.h>

#include "base/log.h"
#include "gateway/api/api.h"
#include "gateway/relay/relays.h"
#include "http/refuse.h"

static void step(struct drain *d, enum drain_state to)
{
	static const bool legal[][DRAIN_OVER + 1] = {
		[DRAIN_ACCEPTS] = { [DRAIN_DRAINS] = true },
		[DRAIN_DRAINS] = { [DRAIN_CUT] = true, [DRAIN_OVER] = true },
		[DRAIN_CUT] = { [DRAIN_OVER] = true },
		[DRAIN_OVER] = { [DRAIN_OVER] = true },
	};

	assert(legal[d->state][to]);
	d->state = to;
	d->since_ms = loop_now_ms(d->g->loop);
}

/* Of clients; those whose last bytes are still leaving count. */
static size_t connections(const struct drain *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_doors; i++)
		n += listener_alive(d->doors[i]);
	return n;
}

/* Who is waited for: operators, too, and what is done in the name of a client that hung up. */
static size_t left(const struct drain *d)
{
	return connections(d) + d->admin->http.n_conns + d->g->api->n_calls;
}

static void say(struct drain *d, bool anew)
{
	uint64_t now_ms = loop_now_ms(d->g->loop);
	char text[SUPERVISOR_STATE_MAX];
	size_t n = connections(d);

	if (!anew && now_ms - d->said_ms < DRAIN_SAY_MS)
		return;
	d->said_ms = now_ms;
	log_info("drains since %llu s, %zu connections are left",
		 (unsigned long long)(now_ms - d->since_ms) / 1000, n);
	(void)snprintf(text, sizeof(text), "STATUS=drains, %zu connections are left", n);
	supervisor_say(d->supervisor, text);
}

static void over(struct drain *d)
{
	step(d, DRAIN_OVER);
	timer_stop(&d->look);
	loop_stop(d->g->loop);
}

/* Clients are told, where there is a way to, and get DRAIN_LAST_MS to hear it. */
static void cut(struct drain *d)
{
	log_warn("cuts off %zu connections, %zu of them streams into sandboxes", connections(d),
		 d->g->relays.n);
	step(d, DRAIN_CUT);
	relays_cut(d->g);
	api_cut(d->g->api);
	d->http->limits.last_ms = d->admin->http.limits.last_ms = 1;
	http_server_drain(d->http);
	http_server_drain(&d->admin->http);
}

bool drain_refuses(const struct drain *d, struct http_request *rq, bool is_api)
{
	static const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/json") },
		{ BYTES_LIT("retry-after"), BYTES_LIT("1") },
	};
	struct http_response r = { .status = is_api ? 429 : 503,
				   .fields = fields,
				   .n_fields = COUNT(fields) };
	AUTO(buf_done) struct buf body = { 0 };

	if (d->state != DRAIN_CUT)
		return false;
	body = http_error_body(r.status, "the gateway is being replaced: ask again");
	http_answer(rq, &r, buf_view(&body));
	return true;
}

static bool is_late(struct drain *d)
{
	uint64_t now_ms = loop_now_ms(d->g->loop);

	if (peers_accept(d->peers))
		d->alone_ms = now_ms;
	return now_ms - d->since_ms >= d->max_ms || now_ms - d->alone_ms >= DRAIN_ALONE_MS;
}

static void look_at_last(struct drain *d)
{
	bool all_gone = left(d) == 0;

	if (all_gone && d->state == DRAIN_DRAINS)
		log_info("nobody is left");
	if (all_gone ||
	    (d->state == DRAIN_CUT && loop_now_ms(d->g->loop) - d->since_ms >= DRAIN_LAST_MS))
		over(d);
	else if (d->state == DRAIN_DRAINS && is_late(d))
		cut(d);
	else if (d->state == DRAIN_DRAINS)
		say(d, false);
}

static void on_look(struct timer *t)
{
	struct drain *d = CONTAINER_OF(t, struct drain, look);

	peers_say(d->peers, d->state == DRAIN_ACCEPTS ? PEER_ACCEPTS : PEER_DRAINS, connections(d));
	if (d->state != DRAIN_ACCEPTS)
		look_at_last(d);
}

void drain_add(struct drain *d, struct listener *door)
{
	assert(d->n_doors < DRAIN_DOORS_MAX);
	d->doors[d->n_doors++] = door;
}

void drain_open(struct drain *d)
{
	timer_init(&d->look, d->g->loop, on_look);
	timer_repeat(&d->look, PEERS_BEAT_MS);
	peers_say(d->peers, PEER_ACCEPTS, 0);
	supervisor_say(d->supervisor, "READY=1\nSTATUS=accepts");
}

void drain_begin(struct drain *d)
{
	if (d->state != DRAIN_ACCEPTS) {
		log_warn("ends at once, as it was told twice");
		over(d);
		return;
	}
	step(d, DRAIN_DRAINS);
	d->alone_ms = d->since_ms;
	for (size_t i = 0; i < d->n_doors; i++)
		listener_stop(d->doors[i]);
	admin_door_drain(d->admin);
	http_server_drain(d->http);
	peers_say(d->peers, PEER_DRAINS, connections(d));
	log_info("drains for at most %llu s: another gateway %s",
		 (unsigned long long)(peers_accept(d->peers) ? d->max_ms : DRAIN_ALONE_MS) / 1000,
		 peers_accept(d->peers) ? "accepts" : "does not accept");
	supervisor_say(d->supervisor, "STOPPING=1");
	say(d, true);
	timer_repeat(&d->look, DRAIN_LOOK_MS);
}

void drain_close(struct drain *d)
{
	timer_stop(&d->look);
}
