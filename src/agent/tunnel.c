/* tunnel.c - see tunnel.h. */
#include "agent/tunnel.h"

#include "agent/agent.h"
#include "agent/reply.h"
#include "agent/route.h"
#include "base/list.h"
#include "base/log.h"
#include "net/dial.h"
#include "net/pump.h"

static const char *const addresses[] = { "127.0.0.1", "::1" };

struct tunnel {
	struct http_handler handler;
	struct http_request *rq; /* until it is a tunnel */
	struct tunnels *all;
	struct loop *loop;
	uint16_t port;
	size_t tried; /* of addresses */
	struct dial dial;
	struct pump pump;
	struct tunnel *next, **prev; /* in the list once it is one */
};

static void tunnel_free(struct tunnel *t)
{
	t->all->n--;
	list_remove(t);
	free(t);
}

static void on_done(struct pump *p, const struct err *err)
{
	if (err)
		log_debug("tunnel: %s", err->msg);
	tunnel_free(CONTAINER_OF(p, struct tunnel, pump));
}

static void refuse(struct tunnel *t, unsigned int status, const char *why)
{
	reply_fail(t->rq, status, "%s", why);
	tunnel_free(t);
}

static void join(struct tunnel *t, struct stream *service)
{
	static const struct pump_ops ops = { on_done };
	static const struct http1_field field = { BYTES_LIT("upgrade"),
						  BYTES_LIT(TUNNEL_PROTOCOL) };
	const struct http_response yes = { .status = 101, .fields = &field, .n_fields = 1 };
	AUTO(buf_done) struct buf early = { 0 };
	struct stream *client;
	struct err err;

	if (http_upgrade(t->rq, &yes, &client, &early, &err) < 0) {
		stream_abort(service);
		refuse(t, 500, err.msg);
		return;
	}
	if (early.len > 0 && stream_write(service, buf_view(&early), &err) < 0) {
		stream_abort(service);
		stream_abort(client);
		tunnel_free(t);
		return;
	}
	list_add(&t->all->first, t);
	pump_start(&t->pump, &ops, client, service, 0);
}

static bool dial_next(struct tunnel *t);

static void on_dialled(struct dial *d, struct stream *s, const struct err *err)
{
	struct tunnel *t = CONTAINER_OF(d, struct tunnel, dial);

	(void)err;
	if (s)
		join(t, s);
	else if (!dial_next(t))
		refuse(t, 502, "port is not open");
}

static bool dial_next(struct tunnel *t)
{
	struct addr to;
	struct err err;

	while (t->tried < COUNT(addresses))
		if (addr_ip(addresses[t->tried++], t->port, &to, &err) == 0 &&
		    dial_start(&t->dial, t->loop, &to, TUNNEL_DIAL_MS, on_dialled, &err) == 0)
			return true;
	return false;
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	struct tunnel *t = CONTAINER_OF(h, struct tunnel, handler);

	(void)err;
	dial_cancel(&t->dial);
	tunnel_free(t);
}

/* 0: the request names none. */
static uint16_t port_of(const struct http1_head *h)
{
	struct bytes value;
	uint64_t port;

	if (!bytes_eq_nocase(http1_upgrade(h), BYTES_LIT(TUNNEL_PROTOCOL)) ||
	    http1_find(h, "hotcell-tunnel-port", &value) != 1 || !bytes_to_u64(value, &port) ||
	    port > UINT16_MAX)
		return 0;
	return (uint16_t)port;
}

static void route_tunnel(struct agent *a, struct http_request *rq)
{
	static const struct http_handler_ops ops = { .on_gone = on_gone };
	uint16_t port = port_of(http_request_head(rq));
	struct tunnel *t;

	if (port == 0) {
		reply_fail(rq, 400, "not a request for a tunnel");
		return;
	}
	t = a->tunnels.n < TUNNELS_MAX ? calloc(1, sizeof(*t)) : NULL;
	if (!t) {
		reply_fail(rq, 429, "too many tunnels");
		return;
	}
	*t = (struct tunnel){
		{ &ops }, .rq = rq, .all = &a->tunnels, .loop = a->loop, .port = port
	};
	a->tunnels.n++;
	http_request_take(rq, &t->handler);
	if (!dial_next(t))
		refuse(t, 502, "port is not open");
}

void tunnels_done(struct tunnels *all)
{
	while (all->first) {
		struct tunnel *t = all->first;

		pump_abort(&t->pump);
		tunnel_free(t);
	}
}

const struct route tunnel_routes[] = {
	{ "/tunnel", "GET", GUARD_NONE, route_tunnel },
	{ 0 },
};
