/* relay_stream.c - what flows: the request to the guest, its answer to the client, and after a
 * switch of protocols whatever they say.
 *
 * A piece that one side sent is written to the other at once. When that one is slow, the first is
 * no longer read: what waits is at most STREAM_LOW_WATER and one piece, each way.
 */
#include "gateway/relay/relay_stream.h"

#include <errno.h>

#include "base/random.h"
#include "gateway/relay/guest_pool.h"
#include "gateway/relay/relay.h"
#include "gateway/relay/relay_guard.h"
#include "gateway/relay/relay_head.h"
#include "wire/http1_host.h"
#include "wire/target.h"

static struct relay *of_handler(struct http_handler *h)
{
	return CONTAINER_OF(h, struct relay, handler);
}

static struct relay *of_reply(struct http_reply *r)
{
	return CONTAINER_OF(r, struct relay, reply);
}

/* The request. */

static void on_request_body(struct http_handler *h, struct bytes piece)
{
	struct relay *r = of_handler(h);
	struct err err;

	relays_moved(r);
	if (r->deaf)
		return; /* it may still answer, so the rest is thrown away */
	if (http_ask_send(r->x, piece, &err) < 0)
		r->deaf = true;
	else if (http_ask_queued(r->x) > STREAM_LOW_WATER)
		http_body_pause(r->rq, true);
}

static void on_request_end(struct http_handler *h)
{
	struct relay *r = of_handler(h);

	if (!r->deaf)
		http_ask_finish(r->x);
}

static void on_guest_drain(struct http_reply *reply)
{
	http_body_pause(of_reply(reply)->rq, false);
}

static void on_client_gone(struct http_handler *h, const struct err *err)
{
	(void)err;
	relay_free(of_handler(h));
}

static void on_client_drain(struct http_handler *h)
{
	struct relay *r = of_handler(h);

	if (r->x)
		http_ask_pause(r->x, false);
}

const struct http_handler_ops relay_handler_ops = {
	.on_body = on_request_body,
	.on_body_end = on_request_end,
	.on_drain = on_client_drain,
	.on_gone = on_client_gone,
};

/* The switch. */

static void on_pump_done(struct pump *p, const struct err *err)
{
	(void)err;
	relay_free(CONTAINER_OF(p, struct relay, pump));
}

static void on_pump_moved(struct pump *p, struct pump_side *from, size_t n)
{
	(void)from, (void)n;
	relays_moved(CONTAINER_OF(p, struct relay, pump));
}

static void pump_both(struct relay *r, struct stream *client, struct buf *from_client,
		      struct stream *guest, struct buf *from_guest)
{
	static const struct pump_ops ops = { .on_done = on_pump_done, .moved = on_pump_moved };
	struct err err;

	r->state = RELAY_SWITCHED;
	if (stream_write_buf(guest, from_client, &err) < 0 ||
	    stream_write_buf(client, from_guest, &err) < 0) {
		stream_abort(guest);
		stream_abort(client);
		relay_free(r);
		return;
	}
	pump_start(&r->pump, &ops, client, guest, 0);
}

/* Not taken over, the answer is the client's to report: on_fail follows. */
static void switch_protocols(struct relay *r, const struct http1_head *head)
{
	AUTO(buf_done) struct buf from_client = { 0 }, from_guest = { 0 };
	struct bytes protocol = http1_upgrade(head);
	struct stream *client, *guest;
	struct relay_fields f;
	struct err err;

	if (protocol.len == 0)
		return;
	relay_answer_fields(r, head, &f);
	f.at[f.n++] = (struct http1_field){ BYTES_LIT("upgrade"), protocol };
	if (!r->counted)
		r->counted = http_request_take_count(r->rq);
	if (http_upgrade(r->rq, &(struct http_response){ .fields = f.at, .n_fields = f.n }, &client,
			 &from_client, &err) < 0)
		return;
	r->rq = NULL;
	r->state = RELAY_SWITCHED;
	if (http_ask_take(r->x, &guest, &from_guest, &err) < 0) {
		stream_abort(client);
		relay_free(r);
		return;
	}
	r->x = NULL;
	http_client_close(TAKE(r->client)); /* nothing is left in it */
	pump_both(r, client, &from_client, guest, &from_guest);
}

/* The answer. */

/* What is said of the body's length: false when it cannot be said. */
static bool answer_length(const struct relay *r, const struct http1_head *head, int64_t *ret)
{
	struct bytes text;
	uint64_t n = head->length;

	*ret = 0;
	if (head->status == 204 || head->status == 304)
		return true;
	*ret = HTTP_CHUNKED;
	if (bytes_eq(http_request_head(r->rq)->method, BYTES_LIT("HEAD"))) {
		if (http1_find(head, "content-length", &text) == 0)
			return true;
		if (!bytes_to_u64(text, &n)) /* of a body that does not come */
			return false;
	} else if (head->body != HTTP1_BODY_LENGTH) {
		return true;
	}
	*ret = (int64_t)n;
	return n <= INT64_MAX;
}

/* One whose end is not known: another envelope may be put behind the last. */
static bool is_connect(const struct http1_head *head, int64_t length)
{
	struct bytes type = { 0 }, coding;

	return length == HTTP_CHUNKED && http1_find(head, "content-type", &type) == 1 &&
	       bytes_eq_nocase(bytes_head(type, 20), BYTES_LIT("application/connect+")) &&
	       http1_find(head, "content-encoding", &coding) == 0;
}

/* Text of DevTools' own: it says where to connect. */
static bool has_devtools_urls(const struct relay *r, const struct http1_head *head)
{
	struct bytes coding;
	struct target t;
	struct err err;

	return r->devtools && target_split(http_request_head(r->rq)->target, &t, &err) == 0 &&
	       bytes_starts(t.path, BYTES_LIT("/json")) && r->devtools->host[0] != '\0' &&
	       http1_find(head, "content-encoding", &coding) == 0;
}

static void on_answer_head(struct http_reply *reply, const struct http1_head *head)
{
	struct relay *r = of_reply(reply);
	struct http_response out = { .status = head->status };
	struct relay_fields f;
	struct err err;

	relays_moved(r);
	if (head->status == 101) {
		switch_protocols(r, head);
		return;
	}
	if (!answer_length(r, head, &out.length)) {
		err_set(&err, ERR_INVALID, 0, "a length out of range");
		relay_failed(r, &err);
		return;
	}
	r->rewrites = has_devtools_urls(r, head);
	if (r->rewrites && out.length != 0)
		out.length = HTTP_CHUNKED;
	relay_answer_fields(r, head, &f);
	out.fields = f.at;
	out.n_fields = f.n;
	if (http_respond(r->rq, &out, &err) < 0) {
		relay_failed(r, &err);
		return;
	}
	r->state = RELAY_ANSWER;
	r->shares = r->shares && head->status != 401; /* some know a connection for one client's */
	r->is_connect = is_connect(head, out.length);
	if (http_queued(r->rq) > STREAM_LOW_WATER)
		http_ask_pause(r->x, true);
}

/* The piece, or with `piece` empty what is left at the end. */
static int send_rewritten(struct relay *r, struct bytes piece, struct err *err)
{
	/* every WebSocket of it may become longer */
	AUTO(buf_done)
	struct buf out = BUF_MAX(DEVTOOLS_HELD_MAX + piece.len +
				 (piece.len / DEVTOOLS_MARK_MIN + 1) * DEVTOOLS_HOST_MAX);

	if ((piece.len ? devtools_urls_pass(r->devtools, piece, &out, err)
		       : devtools_urls_end(r->devtools, &out, err)) < 0)
		return -1;
	return out.len ? http_send(r->rq, buf_view(&out), err) : 0;
}

static void on_answer_body(struct http_reply *reply, struct bytes piece)
{
	struct relay *r = of_reply(reply);
	struct err err;

	relays_moved(r);
	if (r->is_connect)
		envelope_follow(&r->place, piece);
	if ((r->rewrites ? send_rewritten(r, piece, &err) : http_send(r->rq, piece, &err)) < 0)
		relay_failed(r, &err);
	else if (http_queued(r->rq) > STREAM_LOW_WATER)
		http_ask_pause(r->x, true);
}

static void on_answer_end(struct http_reply *reply)
{
	struct relay *r = of_reply(reply);
	struct http_client *c;
	struct err err;

	r->x = NULL;
	if (r->rewrites && send_rewritten(r, (struct bytes){ 0 }, &err) < 0) {
		relay_failed(r, &err);
		return;
	}
	c = TAKE(r->client);
	http_finish(r->rq);
	if (r->shares)
		guest_pool_put(r->user.guest, &(struct guest_pooled){ .client = c,
								      .since_ms = r->since_ms,
								      .port = r->to.port });
	else
		http_client_close(c);
	relay_free(r);
}

static void on_answer_fail(struct http_reply *reply, const struct err *err)
{
	struct relay *r = of_reply(reply);

	r->x = NULL;
	relay_failed(r, err);
}

/* To be asked for once, by a request that is over with its head. Another version of HTTP is not
 * switched to: its requests could name what the gateway answers itself. */
static struct bytes wanted_switch(const struct http1_head *h)
{
	struct bytes protocol = http1_upgrade(h);

	if (http1_has_body(h) || bytes_eq_nocase(bytes_head(protocol, 2), BYTES_LIT("h2")) ||
	    bytes_eq_nocase(bytes_head(protocol, 4), BYTES_LIT("http")))
		return (struct bytes){ 0 };
	return protocol;
}

/* DevTools takes a Host below localhost only, and tells clients to connect to it: it is given one
 * that nobody else knows, and what it tells is changed on the way back. */
static int mask_devtools(struct relay *r, struct err *err)
{
	const struct guarded_port *p = relay_guarded(r);
	char drawn[DEVTOOLS_MARK_MIN + 1];
	struct bytes host = { 0 }, name;
	uint16_t port;

	if (r->devtools || !p || p->kind != GUARDED_DEVTOOLS)
		return 0;
	r->devtools = calloc(1, sizeof(*r->devtools));
	if (!r->devtools)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate a mark");
	random_name(drawn, DEVTOOLS_MARK_MIN);
	snprintf(r->devtools->mark, sizeof(r->devtools->mark), "%s.localhost:%u", drawn,
		 (unsigned int)r->to.port);
	r->devtools->secure = http_request_secure(r->rq);
	if (http1_find(http_request_head(r->rq), "host", &host) != 1 ||
	    !http1_split_host(host, &name, &port) ||
	    !bytes_to_str(host, r->devtools->host, sizeof(r->devtools->host)))
		r->devtools->host[0] = '\0';
	return 0;
}

int relay_ask(struct relay *r, struct err *err)
{
	static const struct http_reply_ops ops = { on_answer_head, on_answer_body, on_answer_end,
						   on_guest_drain, on_answer_fail };
	const struct http1_head *h = http_request_head(r->rq);
	AUTO(buf_done) struct buf room = BUF_MAX(HTTP1_TARGET_MAX + 1);
	AUTO(buf_done) struct buf cookies = BUF_MAX(HTTP1_HEAD_MAX);
	struct http_ask ask = { .method = h->method };
	struct relay_fields f;

	if (mask_devtools(r, err) < 0 || relay_request_fields(r, &cookies, &f, err) < 0)
		return -1;
	ask.host = relay_host(r, &f);
	ask.fields = f.at;
	ask.n_fields = f.n;
	ask.length = h->body == HTTP1_BODY_CHUNKED ? HTTP_CHUNKED : (int64_t)h->length;
	ask.upgrade = wanted_switch(h);
	r->reply.ops = &ops;
	if (relay_target(r, &room, &ask.target, err) < 0 ||
	    http_ask(r->client, &ask, &r->reply, &r->x, err) < 0)
		return -1;
	r->state = RELAY_ASKED;
	if (ask.length != 0)
		http_body_start(r->rq, UINT64_MAX);
	return 0;
}
