/* relay.c - the way to a port of a sandbox, and every way in which it ends. */
/* #syscalls: close */
#include "gateway/relay/relay.h"

#include <errno.h>

#include "gateway/relay/devtools_page.h"
#include "gateway/relay/guest_pool.h"
#include "gateway/relay/relay_guard.h"
#include "gateway/relay/relay_refuse.h"
#include "gateway/relay/relay_stream.h"
#include "gateway/relay/signed_files.h"
#include "net/tcp.h"
#include "tls/tls_stream.h"

bool relay_is_agent(const struct relay *r)
{
	return r->to.port == r->g->guests->agent_port;
}

/* The agent is ours. A service of the user's may close a connection whenever it likes, so nothing
 * goes over a used one that could not be asked again; and it may be wrong about where a body ends,
 * so what has one shares no connection: the rest would be taken for somebody else's request. */
static bool may_share(const struct relay *r)
{
	const struct http1_head *h = http_request_head(r->rq);

	return relay_is_agent(r) || (bytes_eq(h->method, BYTES_LIT("GET")) && !http1_has_body(h) &&
				     http1_upgrade(h).len == 0);
}

void relay_free(struct relay *r)
{
	if (r->state == RELAY_SWITCHED)
		pump_abort(&r->pump);
	dial_cancel(&r->dial);
	guest_tunnel_cancel(&r->tunnel);
	timer_stop(&r->retry);
	http_client_close(r->client); /* with the exchange, if one is under way */
	relays_remove(r);
	address_count_drop(r->counted);
	guest_leave(&r->user);
	free(r->devtools);
	free(r);
}

static void refuse(struct relay *r, enum relay_refusal why)
{
	relay_refuse(r->rq, &r->to, relay_is_agent(r), why);
	relay_free(r);
}

static void cut_off(struct relay *r)
{
	http_abort(r->rq);
	relay_free(r);
}

/* True: it was answered here, and goes no further. */
static bool turned_away(struct relay *r)
{
	enum relay_refusal why;

	switch (relay_entry(r, &why)) {
	case ENTRY_FREE:
		if (!devtools_page_answers(r))
			return false;
		relay_free(r);
		return true;
	case ENTRY_REFUSED:
		refuse(r, why);
		return true;
	case ENTRY_EXCHANGE:
		relay_exchange(r);
		relay_free(r);
	}
	return true;
}

static void ask_over(struct relay *r, struct http_client *client);
static void dial_with(struct relay *r, int fd);

static void find_way(struct relay *r)
{
	/* the first try may go over a connection that is there */
	bool may_pool = r->shares && !r->pooled && r->tries == 0;
	struct http_client *c;
	int fd;

	if (r->user.guest->known && turned_away(r)) /* before it costs a socket */
		return;
	c = may_pool ? guest_pool_take(r->user.guest, r->to.port, &r->since_ms) : NULL;
	if (c) {
		r->pooled = true;
		ask_over(r, c);
		return;
	}
	r->state = RELAY_SOCKET;
	if (guest_socket(&r->user, &fd))
		dial_with(r, fd);
}

/* A pooled connection may have ended just before we used it. What cannot have done harm is asked
 * again over a new one. */
static bool may_repeat(const struct relay *r, const struct err *err)
{
	static const char *const methods[] = { "GET", "HEAD", "OPTIONS", "PUT", "DELETE" };
	const struct http1_head *h = http_request_head(r->rq);

	if (!r->pooled || err->code != ERR_UNAVAILABLE)
		return false;
	if (r->state != RELAY_ASKED)
		return true; /* not a byte was sent */
	if (http1_has_body(h))
		return false;
	for (size_t i = 0; i < COUNT(methods); i++)
		if (bytes_eq(h->method, bytes_str(methods[i])))
			return true;
	return false;
}

static bool is_https(const struct relay *r)
{
	return !relay_is_agent(r) && ingress_is_https(&r->user.guest->ingress, r->to.port);
}

static enum relay_refusal refusal_of(const struct relay *r, const struct err *err)
{
	if (err->code == ERR_TIMEOUT)
		return REFUSE_LATE;
	if (err->code != ERR_INVALID && err->code != ERR_EXHAUSTED)
		return REFUSE_SILENT;
	return is_https(r) ? REFUSE_TLS : REFUSE_BROKEN;
}

void relay_failed(struct relay *r, const struct err *err)
{
	if (http_responded(r->rq)) {
		cut_off(r);
		return;
	}
	if (!may_repeat(r, err)) {
		refuse(r, refusal_of(r, err));
		return;
	}
	http_client_close(TAKE(r->client));
	r->x = NULL;
	r->tries = 1; /* so that no other pooled one is taken */
	r->pooled = false;
	find_way(r);
}

static void ask_over(struct relay *r, struct http_client *client)
{
	struct err err;

	r->client = client;
	if (relay_ask(r, &err) == 0)
		return;
	if (err.code == ERR_UNAVAILABLE)
		relay_failed(r, &err);
	else
		refuse(r, REFUSE_HEAD);
}

/* Nobody listens, perhaps not yet, or only on the guest's loopback; or nobody is there at all. */
static void dial_failed(struct relay *r, const struct err *err)
{
	if (err->sys != ECONNREFUSED) {
		guest_doubt(&r->user);
	} else if (!r->by_tunnel && !relay_is_agent(r)) {
		r->by_tunnel = true;
		find_way(r);
		return;
	}
	r->by_tunnel = false;
	if (err->code == ERR_TIMEOUT || ++r->tries >= RELAY_TRIES) {
		refuse(r, REFUSE_PORT);
		return;
	}
	r->state = RELAY_PAUSE;
	timer_start(&r->retry, RELAY_RETRY_MS * r->tries);
}

static void on_retry(struct timer *t)
{
	find_way(CONTAINER_OF(t, struct relay, retry));
}

/* A service whose owner said that it speaks TLS. Whose certificate it has means nothing: all that
 * is in the guest is the owner's. */
static int wrap(struct relay *r, struct stream **s, const struct buf *early, struct err *err)
{
	if (!is_https(r))
		return 0;
	if (early && early->len > 0) { /* in TLS the client is the first to speak */
		stream_abort(TAKE(*s));
		return err_set(err, ERR_INVALID, 0, "it spoke first");
	}
	return tls_connect(r->g->guest_tls, *s, NULL, "http/1.1", s, err);
}

static void connected(struct relay *r, struct stream *s, struct buf *early)
{
	/* The client may be silent for as long as it likes, and so may a server of the user's. The
	 * agent begins its answers soon, unless somebody took its place. */
	uint64_t ms = relay_is_agent(r) ? r->g->guests->agent_ms : 0;
	const struct http_limits limits = { .reply_ms = ms, .write_stall_ms = ms };
	struct http_client *c;
	struct err err;

	r->since_ms = loop_now_ms(r->g->loop);
	if (wrap(r, &s, early, &err) < 0)
		refuse(r, err.code == ERR_INVALID ? REFUSE_TLS : REFUSE_NODE);
	else if (http_client_open_early(s, early, &limits, &c, &err) < 0)
		refuse(r, REFUSE_NODE);
	else
		ask_over(r, c);
}

static void on_dialed(struct dial *d, struct stream *s, const struct err *err)
{
	struct relay *r = CONTAINER_OF(d, struct relay, dial);

	if (s)
		connected(r, s, NULL);
	else
		dial_failed(r, err);
}

static void on_tunnel(struct guest_tunnel *t, struct stream *s, struct buf *early,
		      const struct err *err)
{
	struct relay *r = CONTAINER_OF(t, struct relay, tunnel);

	if (s)
		connected(r, s, early);
	else
		dial_failed(r, err);
}

static int start_dial(struct relay *r, int fd, const struct addr *to, struct err *err)
{
	if (r->g->relays.n > RELAY_WIDE_MAX)
		tcp_bound_input(fd);
	if (r->by_tunnel)
		return guest_tunnel_start(&r->tunnel, r->g->loop,
					  &(struct guest_tunnel_to){ fd, to, r->to.port },
					  on_tunnel, err);
	return dial_start_fd(&r->dial, r->g->loop, fd, to, RELAY_DIAL_MS, on_dialed, err);
}

static void dial_with(struct relay *r, int fd)
{
	const struct guest_cache *c = r->g->guests;
	struct addr to;
	struct err err;

	r->state = RELAY_DIAL;
	if (addr_ip(c->address, r->by_tunnel ? c->agent_port : r->to.port, &to, &err) < 0) {
		close(fd);
		refuse(r, REFUSE_NODE);
	} else if (start_dial(r, fd, &to, &err) < 0) {
		refuse(r, REFUSE_NODE);
	}
}

static enum relay_refusal refusal_of_node(const struct err *err)
{
	static const enum relay_refusal said[ERR_CODES] = {
		[ERR_DENIED] = REFUSE_TOKEN,   [ERR_EXISTS] = REFUSE_BUSY,
		[ERR_EXHAUSTED] = REFUSE_FULL, [ERR_MISMATCH] = REFUSE_ELSEWHERE,
		[ERR_NO_SPACE] = REFUSE_FULL,  [ERR_BASE_LOST] = REFUSE_BASE,
	};

	if (err->code == ERR_NOT_FOUND)
		return REFUSE_NOT_FOUND;
	return said[err->code] ? said[err->code] : REFUSE_NODE;
}

static void on_socket(struct guest_user *u, int fd, const struct err *err)
{
	struct relay *r = CONTAINER_OF(u, struct relay, user);

	if (fd >= 0 && turned_away(r)) {
		close(fd);
	} else if (fd >= 0) {
		dial_with(r, fd);
	} else if (err->code == ERR_DENIED && relay_is_agent(r) &&
		   signed_wake(r->g, r->rq, &r->to)) {
		relay_free(r); /* it comes back with a token, or refuses */
	} else {
		refuse(r, refusal_of_node(err));
	}
}

void relay_end(struct relay *r)
{
	if (r->state == RELAY_SWITCHED)
		relay_free(r);
	else if (http_responded(r->rq))
		cut_off(r);
	else
		refuse(r, REFUSE_CROWD);
}

/* A stream of the Connect protocol has a place for what went wrong, behind a whole message. */
static bool ends_with_error(struct relay *r)
{
	static const char text[] = "the gateway is being replaced: what runs in the sandbox runs "
				   "on, connect to it again";
	AUTO(buf_done) struct buf out = BUF_MAX(CONNECT_MESSAGE_MAX);
	struct err err;

	if (!r->is_connect || !envelope_between(&r->place) ||
	    connect_put_end_error(&out, CONNECT_UNAVAILABLE, BYTES_LIT(text), &err) < 0 ||
	    http_send(r->rq, buf_view(&out), &err) < 0)
		return false;
	http_finish(r->rq);
	return true;
}

void relay_cut(struct relay *r)
{
	if (r->state == RELAY_SWITCHED)
		pump_close(&r->pump);
	else if (!http_responded(r->rq))
		relay_refuse(r->rq, &r->to, relay_is_agent(r), REFUSE_REPLACED);
	else if (!ends_with_error(r))
		http_abort(r->rq);
	relay_free(r);
}

static int join(struct relay *r, struct err *err);

/* Not a byte of the request has left, so it may go to whatever the sandbox is next: paused, it may
 * be resumed; if it is no more, node says so. */
static void begin_again(struct relay *r)
{
	struct err err;

	dial_cancel(&r->dial);
	guest_tunnel_cancel(&r->tunnel);
	timer_stop(&r->retry);
	r->by_tunnel = false;
	r->tries = 1; /* no pooled one: it would be of the past */
	if (join(r, &err) < 0)
		refuse(r, REFUSE_NODE);
	else
		find_way(r);
}

/* The sandbox is no more. What was begun must not look whole. */
static void on_gone(struct guest_user *u)
{
	struct relay *r = CONTAINER_OF(u, struct relay, user);

	if (r->state == RELAY_SWITCHED)
		relay_free(r);
	else if (http_responded(r->rq))
		cut_off(r);
	else if (r->state == RELAY_DIAL || r->state == RELAY_PAUSE)
		begin_again(r);
	else
		refuse(r, REFUSE_NOT_FOUND);
}

/* With what a paused sandbox wants to see. */
static int join(struct relay *r, struct err *err)
{
	static const struct guest_user_ops ops = { on_socket, on_gone };
	const struct http1_head *h = http_request_head(r->rq);
	bool is_agent = relay_is_agent(r);
	struct bytes token = { 0 };

	if (guest_join(r->g->guests, r->to.id, &r->user, &ops, err) < 0)
		return -1;
	r->user.to_agent = is_agent;
	if (!is_agent)
		r->user.token = relay_credential(r);
	else if (http1_find(h, "x-access-token", &token) == 1)
		r->user.token = token;
	else
		r->user.token = bytes_str(r->to.wake_token);
	return 0;
}

static bool answered_here(struct gateway *g, struct http_request *rq, const struct dispatch *to)
{
	const struct http1_head *h = http_request_head(rq);
	bool is_agent = to->port == g->guests->agent_port;

	if (to->plane == PLANE_BAD)
		relay_refuse_text(rq, 400, to->message);
	else if (to->plane == PLANE_SIGNED)
		signed_request(g, rq);
	else if (h->form == HTTP1_AUTHORITY) /* CONNECT: a tunnel to somewhere */
		relay_refuse(rq, to, is_agent, REFUSE_METHOD);
	else if (h->body == HTTP1_BODY_LENGTH && h->length > INT64_MAX)
		relay_refuse(rq, to, is_agent, REFUSE_BODY);
	else if (relay_is_grpc(h))
		relay_refuse_grpc(rq);
	else
		return is_agent && relay_answers_for_agent(rq);
	return true;
}

void relay_request(struct gateway *g, struct http_request *rq, const struct dispatch *to)
{
	struct relay *r;
	struct err err;

	if (answered_here(g, rq, to))
		return;
	if (g->relays.max > 0 && g->relays.n >= g->relays.max && !relays_shed(g)) {
		relay_refuse(rq, to, to->port == g->guests->agent_port, REFUSE_CROWD);
		return;
	}
	r = calloc(1, sizeof(*r));
	if (r)
		*r = (struct relay){ .g = g, .to = *to, .rq = rq };
	if (!r || join(r, &err) < 0) {
		free(r);
		http_fail(rq, 500, "out of memory");
		return;
	}
	if (!relays_count(r)) {
		relay_refuse(rq, to, relay_is_agent(r), REFUSE_ADDRESS);
		relay_free(r);
		return;
	}
	if (!relay_is_agent(r) && r->user.guest->n_users > g->guests->users_max) {
		relay_refuse_crowd(rq, to, g->guests->users_max);
		relay_free(r);
		return;
	}
	r->shares = may_share(r);
	r->handler.ops = &relay_handler_ops;
	timer_init(&r->retry, g->loop, on_retry);
	relays_add(r);
	http_request_take(rq, &r->handler);
	http_request_rests(rq);
	find_way(r);
}
