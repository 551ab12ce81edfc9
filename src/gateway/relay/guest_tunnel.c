/* guest_tunnel.c - see guest_tunnel.h. The agent's side is agent/tunnel.h. */
#include "gateway/relay/guest_tunnel.h"

#include <errno.h>

#define PROTOCOL "hotcell-tunnel"

static struct guest_tunnel *of(struct http_reply *r)
{
	return CONTAINER_OF(r, struct guest_tunnel, reply);
}

static void fail(struct guest_tunnel *t, const struct err *why)
{
	http_client_close(TAKE(t->client));
	t->x = NULL;
	t->on_done(t, NULL, NULL, why);
}

static void on_head(struct http_reply *r, const struct http1_head *head)
{
	AUTO(buf_done) struct buf early = { 0 };
	struct guest_tunnel *t = of(r);
	struct stream *s;
	struct err why;

	if (head->status != 101 || !bytes_eq_nocase(http1_upgrade(head), BYTES_LIT(PROTOCOL))) {
		err_set(&why, ERR_UNAVAILABLE, ECONNREFUSED, "no tunnel to port %u",
			(unsigned int)t->port);
		fail(t, &why);
		return;
	}
	if (http_ask_take(t->x, &s, &early, &why) < 0) {
		fail(t, &why);
		return;
	}
	t->x = NULL;
	http_client_close(TAKE(t->client)); /* nothing is left in it */
	t->on_done(t, s, &early, NULL);
}

static void on_fail(struct http_reply *r, const struct err *err)
{
	fail(of(r), err);
}

static int ask(struct guest_tunnel *t, struct err *err)
{
	static const struct http_reply_ops ops = { .on_head = on_head, .on_fail = on_fail };
	char port[8];
	struct http1_field field = { BYTES_LIT("hotcell-tunnel-port"), { 0 } };
	const struct http_ask ask = {
		.method = BYTES_LIT("GET"),
		.target = BYTES_LIT("/tunnel"),
		.host = BYTES_LIT("agent"),
		.fields = &field,
		.n_fields = 1,
		.upgrade = BYTES_LIT(PROTOCOL),
		.deadline_ms = GUEST_TUNNEL_MS,
	};

	(void)snprintf(port, sizeof(port), "%u", (unsigned int)t->port);
	field.value = bytes_str(port);
	t->reply.ops = &ops;
	return http_ask(t->client, &ask, &t->reply, &t->x, err);
}

static void on_dialed(struct dial *d, struct stream *s, const struct err *err)
{
	static const struct http_limits no_limits = { 0 }; /* but for the deadline of the ask */
	struct guest_tunnel *t = CONTAINER_OF(d, struct guest_tunnel, dial);
	struct err why;

	if (!s)
		fail(t, err);
	else if (http_client_open(s, &no_limits, &t->client, &why) < 0 || ask(t, &why) < 0)
		fail(t, &why);
}

int guest_tunnel_start(struct guest_tunnel *t, struct loop *l, const struct guest_tunnel_to *to,
		       guest_tunnel_done_fn *on_done, struct err *err)
{
	*t = (struct guest_tunnel){ .on_done = on_done, .port = to->port };
	return dial_start_fd(&t->dial, l, to->fd, to->agent, GUEST_TUNNEL_MS, on_dialed, err);
}

void guest_tunnel_cancel(struct guest_tunnel *t)
{
	dial_cancel(&t->dial);
	http_client_close(TAKE(t->client)); /* with the exchange */
	t->x = NULL;
}
