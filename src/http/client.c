/* client.c - one HTTP/1.1 connection of a client: its life, what arrives, its times, the calls.
 *
 * Closed by its owner, a client is freed in the next turn of the loop, since its own code may be on
 * the stack.
 */
#include "http/client.h"

#include <assert.h>
#include <errno.h>

#include "http/body.h"
#include "net/timer.h"
#include "wire/http1_encode.h"

enum { ASK_HEAD_MAX = HTTP1_HEAD_MAX };

enum client_wait { CLIENT_WAIT_NOTHING, CLIENT_WAIT_HEAD, CLIENT_WAIT_BODY };

struct http_exchange {
	struct http_client *client;
	struct http_reply *reply;
	uint8_t method[HTTP1_METHOD_MAX];
	size_t method_len;
	bool wants_switch;
	struct body_out out;
	bool sent; /* the whole request */
	unsigned int interim;
	struct http1_head head; /* of the answer; borrows from head_bytes */
	struct buf head_bytes;
	bool has_head;
	struct body_in body;
	bool paused;
	struct timer deadline;
};

struct http_client {
	struct stream *s; /* NULL: given up, or taken over */
	struct stream_user user;
	struct http_out out;
	struct loop *loop;
	struct http_limits limits;
	struct http_exchange *x; /* under way, or NULL */
	struct buf in;           /* arrived, not yet used */
	struct bytes view;       /* the same while feeding; may borrow from the stream instead */
	bool feeding;
	struct http_turn turn; /* while feeding */
	bool closed;           /* by the owner */
	size_t scanned;        /* of the head, see http1_head_end() */
	enum client_wait wait;
	struct timer input, output, later;
	uint64_t sent_seen;
	struct err why; /* to be told by `later` */
};

static void exchange_free(struct http_exchange *x)
{
	if (!x)
		return;
	timer_stop(&x->deadline);
	buf_done(&x->head_bytes);
	free(x);
}

static void client_drop_stream(struct http_client *c, bool graceful)
{
	timer_stop(&c->input);
	timer_stop(&c->output);
	c->wait = CLIENT_WAIT_NOTHING;
	if (!c->s)
		return;
	http_out_flush(&c->out);
	if (graceful)
		stream_close(c->s);
	else
		stream_abort(c->s);
	http_out_done(&c->out);
	c->s = NULL;
}

/* Tells who asks, if anyone. */
static void client_fail(struct http_client *c, const struct err *why)
{
	struct http_exchange *x = c->x;

	c->x = NULL;
	client_drop_stream(c, false);
	if (!x)
		return;
	x->reply->ops->on_fail(x->reply, why);
	exchange_free(x);
}

/* --- what a server answers, step by step ---------------------------------------------------- */

static int bad(struct http_client *c, const char *what)
{
	struct err why;

	err_set(&why, ERR_INVALID, 0, "%s", what);
	client_fail(c, &why);
	return -1;
}

/* The whole answer is here. Whoever is told may ask again at once, or close the client. */
static void complete(struct http_client *c)
{
	struct http_exchange *x = c->x;
	bool reusable;

	http_out_flush(&c->out); /* what does not leave now never will */
	reusable = x->sent && !c->out.broken && x->body.kind != HTTP1_BODY_CLOSE &&
		   c->view.len == 0 && http1_keep_alive(&x->head);

	c->x = NULL;
	c->wait = CLIENT_WAIT_NOTHING;
	timer_stop(&c->input);
	timer_stop(&x->deadline);
	if (!reusable)
		client_drop_stream(c, true);
	if (x->reply->ops->on_end)
		x->reply->ops->on_end(x->reply);
	exchange_free(x);
}

static void on_switch(struct http_client *c, struct http_exchange *x)
{
	if (!x->wants_switch) {
		bad(c, "the server switched protocols unasked");
		return;
	}
	x->reply->ops->on_head(x->reply, &x->head);
	if (c->x == x)
		bad(c, "nobody took the switched connection");
}

/* A head was parsed into x. */
static void on_head(struct http_client *c, struct http_exchange *x)
{
	if (x->head.status == 101) {
		on_switch(c, x);
		return;
	}
	if (x->head.status < 200) {
		buf_done(&x->head_bytes);
		if (++x->interim > HTTP_INTERIM_MAX)
			bad(c, "too many interim answers");
		return;
	}
	x->has_head = true;
	body_in_init(&x->body, &x->head);
	x->reply->ops->on_head(x->reply, &x->head);
}

static int parse(struct http_exchange *x, struct bytes head, struct err *err)
{
	struct bytes method = { x->method, x->method_len };

	x->head_bytes = BUF_MAX(HTTP1_HEAD_MAX);
	if (buf_add(&x->head_bytes, head, err) < 0)
		return -1;
	return http1_parse_response(buf_view(&x->head_bytes), method, &x->head, err);
}

static bool step_head(struct http_client *c, struct http_exchange *x)
{
	struct err err;
	size_t used;
	int rc;

	if (c->view.len == 0)
		return false;
	switch (http1_head_end(c->view, &c->scanned, &used, &err)) {
	case DECODE_MORE:
		return false;
	case DECODE_BAD:
		client_fail(c, &err);
		return false;
	case DECODE_OK:
		break;
	}
	rc = parse(x, bytes_head(c->view, used), &err);
	c->view = bytes_tail(c->view, used);
	c->scanned = 0;
	if (rc < 0)
		client_fail(c, &err);
	else
		on_head(c, x);
	return true;
}

static bool step_body(struct http_client *c, struct http_exchange *x)
{
	AUTO(buf_done) struct buf room = BUF_MAX(HTTP_INPUT_MAX);
	struct bytes piece;
	struct err err;

	if (x->paused)
		return false;
	switch (body_in_gather(&x->body, &c->view, &room, &c->turn.chunks, &piece, &err)) {
	case DECODE_MORE:
		return false;
	case DECODE_BAD:
		client_fail(c, &err);
		return false;
	case DECODE_OK:
		break;
	}
	if (piece.len == 0)
		complete(c);
	else if (x->reply->ops->on_body)
		x->reply->ops->on_body(x->reply, piece);
	return true;
}

/* False: waits for something. */
static bool client_step(struct http_client *c)
{
	struct http_exchange *x = c->x;

	if (!c->s)
		return false;
	if (!x) {
		if (c->view.len > 0) /* nobody asked for this */
			client_drop_stream(c, false);
		return false;
	}
	return x->has_head ? step_body(c, x) : step_head(c, x);
}

/* The server finished writing. */
static void client_on_end(struct http_client *c)
{
	struct http_exchange *x = c->x;
	struct err why;

	if (!x) {
		client_drop_stream(c, true);
		return;
	}
	if (x->has_head && x->body.kind == HTTP1_BODY_CLOSE) {
		x->body.over = true;
		complete(c);
		return;
	}
	err_set(&why, ERR_UNAVAILABLE, 0, "%s",
		x->has_head ? "the answer was cut short" : "the server closed without an answer");
	client_fail(c, &why);
}

/* --- times, and the stream ------------------------------------------------------------------ */

static enum client_wait waits_for(const struct http_client *c)
{
	const struct http_exchange *x = c->x;

	if (!x || !c->s)
		return CLIENT_WAIT_NOTHING;
	if (!x->has_head)
		return x->sent ? CLIENT_WAIT_HEAD : CLIENT_WAIT_NOTHING;
	return x->paused ? CLIENT_WAIT_NOTHING : CLIENT_WAIT_BODY;
}

static void update_timer(struct http_client *c, bool new_bytes)
{
	const uint64_t ms[] = {
		[CLIENT_WAIT_NOTHING] = 0,
		[CLIENT_WAIT_HEAD] = c->limits.reply_ms,
		[CLIENT_WAIT_BODY] = c->limits.body_stall_ms,
	};
	enum client_wait now = waits_for(c);

	if (now == c->wait && !(now == CLIENT_WAIT_BODY && new_bytes))
		return;
	c->wait = now;
	if (ms[now] > 0)
		timer_start(&c->input, ms[now]);
	else
		timer_stop(&c->input);
}

static void settle(struct http_client *c, bool new_bytes)
{
	const struct http_exchange *x = c->x;

	if (!c->s)
		return;
	if (c->in.len == 0)
		buf_done(&c->in); /* an idle connection holds nothing */
	c->in.max = HTTP_INPUT_MAX;
	update_timer(c, new_bytes);
	stream_read(c->s, !(x && x->has_head && (x->paused || c->in.len > 0)));
}

static void feed(struct http_client *c, struct bytes in)
{
	c->view = in;
	c->feeding = true;
	c->turn = HTTP_TURN;
	for (size_t before = in.len; client_step(c); before = c->view.len)
		if (http_turn_used(&c->turn, before, c->view.len)) {
			timer_start(&c->later, 0); /* the rest in the next turn */
			break;
		}
	c->feeding = false;
}

static void feed_kept(struct http_client *c, bool new_bytes)
{
	feed(c, buf_view(&c->in));
	buf_drop(&c->in, c->in.len - c->view.len);
	settle(c, new_bytes);
}

static struct http_client *of(struct stream_user *u)
{
	return CONTAINER_OF(u, struct http_client, user);
}

static void on_data(struct stream_user *u, struct bytes in)
{
	struct http_client *c = of(u);
	struct err err;

	if (c->in.len > 0) {
		if (buf_add(&c->in, in, &err) < 0)
			client_fail(c, &err);
		else
			feed_kept(c, true);
		return;
	}
	feed(c, in); /* straight from the stream: a body is not copied */
	if (c->s && buf_add(&c->in, c->view, &err) < 0)
		client_fail(c, &err);
	else
		settle(c, true);
}

static void on_end(struct stream_user *u)
{
	client_on_end(of(u));
}

static void on_drain(struct stream_user *u)
{
	struct http_exchange *x = of(u)->x;

	if (x && !x->sent && x->reply->ops->on_drain)
		x->reply->ops->on_drain(x->reply);
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	client_fail(of(u), err);
}

static void timed_out(struct http_client *c, const char *what)
{
	struct err why;

	err_set(&why, ERR_TIMEOUT, 0, "%s", what);
	client_fail(c, &why);
}

static void on_input_timeout(struct timer *t)
{
	struct http_client *c = CONTAINER_OF(t, struct http_client, input);

	timed_out(c, c->wait == CLIENT_WAIT_HEAD ? "no answer in time" : "the answer stalled");
}

static void on_deadline(struct timer *t)
{
	timed_out(CONTAINER_OF(t, struct http_exchange, deadline)->client,
		  "the deadline of the exchange passed");
}

static void watch_output(struct http_client *c)
{
	if (c->limits.write_stall_ms == 0 || c->output.active || stream_queued(c->s) == 0)
		return;
	c->sent_seen = stream_sent(c->s);
	timer_start(&c->output, c->limits.write_stall_ms);
}

static void on_slow(struct http_out *o)
{
	watch_output(CONTAINER_OF(o, struct http_client, out));
}

static void on_output_timeout(struct timer *t)
{
	struct http_client *c = CONTAINER_OF(t, struct http_client, output);

	if (stream_queued(c->s) == 0 || stream_sent(c->s) != c->sent_seen)
		watch_output(c);
	else
		timed_out(c, "the server does not take the request");
}

static void on_later(struct timer *t)
{
	struct http_client *c = CONTAINER_OF(t, struct http_client, later);

	if (c->closed) {
		buf_done(&c->in);
		free(c);
	} else if (c->why.code != ERR_NONE) {
		client_fail(c, &c->why);
	} else if (c->s) {
		feed_kept(c, false);
	}
}

int http_client_open(struct stream *s, const struct http_limits *limits, struct http_client **ret,
		     struct err *err)
{
	static const struct stream_user_ops user_ops = { on_data, on_end, on_drain, on_fail };
	struct http_client *c = calloc(1, sizeof(*c));

	if (!c) {
		stream_abort(s);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate client");
	}
	c->s = s;
	http_out_open(&c->out, s, on_slow);
	c->user.ops = &user_ops;
	c->loop = stream_loop(s);
	c->limits = *limits;
	timer_init(&c->input, c->loop, on_input_timeout);
	timer_init(&c->output, c->loop, on_output_timeout);
	timer_init(&c->later, c->loop, on_later);
	stream_set_user(s, &c->user);
	settle(c, false);
	*ret = c;
	return 0;
}

int http_client_open_early(struct stream *s, struct buf *early, const struct http_limits *limits,
			   struct http_client **ret, struct err *err)
{
	if (http_client_open(s, limits, ret, err) < 0)
		return -1;
	if (early) {
		(*ret)->in = *early;
		*early = (struct buf){ 0 };
		(*ret)->in.max = HTTP_INPUT_MAX;
	}
	return 0;
}

bool http_client_ready(const struct http_client *c)
{
	return c->s && !c->x && c->why.code == ERR_NONE;
}

void http_client_close(struct http_client *c)
{
	if (!c)
		return;
	assert(!c->closed);
	client_drop_stream(c, !c->x);
	exchange_free(c->x);
	c->x = NULL;
	c->closed = true;
	timer_start(&c->later, 0);
}

/* --- asking --------------------------------------------------------------------------------- */

static bool is_ours(struct bytes name)
{
	return bytes_eq_nocase(name, BYTES_LIT("host")) ||
	       bytes_eq_nocase(name, BYTES_LIT("content-length")) ||
	       bytes_eq_nocase(name, BYTES_LIT("transfer-encoding"));
}

static int put_fields(struct buf *out, const struct http_ask *ask, struct err *err)
{
	if (ask->n_fields > HTTP_FIELDS_OUT_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d fields", HTTP_FIELDS_OUT_MAX);
	for (size_t i = 0; i < ask->n_fields; i++) {
		struct http1_field f = ask->fields[i];

		if (is_ours(f.name))
			return err_set(err, ERR_INVALID, 0, "%.*s is set by the client",
				       (int)f.name.len, (const char *)f.name.ptr);
		if (http1_put_field(out, f.name, f.value, err) < 0)
			return -1;
	}
	if (ask->upgrade.len == 0)
		return 0;
	if (http1_put_field(out, BYTES_LIT("Connection"), BYTES_LIT("upgrade"), err) < 0)
		return -1;
	return http1_put_field(out, BYTES_LIT("Upgrade"), ask->upgrade, err);
}

/* A method that usually has a body says so when it has none. */
static bool expects_body(struct bytes method)
{
	return bytes_eq(method, BYTES_LIT("POST")) || bytes_eq(method, BYTES_LIT("PUT")) ||
	       bytes_eq(method, BYTES_LIT("PATCH"));
}

static struct body_out plan_body(const struct http_ask *ask)
{
	struct body_out b = { .kind = HTTP1_BODY_NONE };

	if (ask->length == HTTP_CHUNKED && ask->body.len == 0) {
		b.kind = HTTP1_BODY_CHUNKED;
		return b;
	}
	b.left = ask->body.len > 0 ? ask->body.len : (uint64_t)ask->length;
	if (b.left > 0 || expects_body(ask->method))
		b.kind = HTTP1_BODY_LENGTH;
	return b;
}

/* Names are spelt as most write them: there are servers, and tests, that look for them letter by
 * letter. */
static int send_head(struct http_client *c, const struct http_ask *ask, struct body_out *body,
		     struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(STREAM_QUEUE_MAX);

	if (http1_put_request_line(&out, ask->method, ask->target, err) < 0 ||
	    http1_put_field(&out, BYTES_LIT("Host"), ask->host, err) < 0 ||
	    put_fields(&out, ask, err) < 0 ||
	    http1_put_body(&out, body->kind, body->left, err) < 0 || http1_put_end(&out, err) < 0)
		return -1;
	if (out.len > ASK_HEAD_MAX || ask->body.len > HTTP_WHOLE_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "a request of %zu + %zu bytes", out.len,
			       ask->body.len);
	if (buf_add(&out, ask->body, err) < 0 || stream_write_buf(c->s, &out, err) < 0)
		return -1;
	body->left -= ask->body.len;
	return 0;
}

int http_ask(struct http_client *c, const struct http_ask *ask, struct http_reply *r,
	     struct http_exchange **ret, struct err *err)
{
	AUTO(auto_free) struct http_exchange *x = NULL;

	assert(ask->length >= HTTP_CHUNKED);
	if (!http_client_ready(c))
		return err_set(err, ERR_UNAVAILABLE, 0, "the connection is closed or in use");
	x = calloc(1, sizeof(*x));
	if (!x)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate exchange");
	x->client = c;
	x->reply = r;
	x->out = plan_body(ask);
	x->wants_switch = ask->upgrade.len > 0;
	if (send_head(c, ask, &x->out, err) < 0)
		return err_wrap(err, "ask");
	x->method_len = ask->method.len; /* at most HTTP1_METHOD_MAX, or it was not sent */
	memcpy(x->method, ask->method.ptr, x->method_len);
	x->sent = x->out.kind != HTTP1_BODY_CHUNKED && x->out.left == 0;
	timer_init(&x->deadline, c->loop, on_deadline);
	if (ask->deadline_ms > 0)
		timer_start(&x->deadline, ask->deadline_ms);
	*ret = c->x = TAKE(x);
	if (c->in.len > 0) /* early: no callback from inside a call */
		timer_start(&c->later, 0);
	watch_output(c);
	update_timer(c, false);
	return 0;
}

int http_ask_send(struct http_exchange *x, struct bytes piece, struct err *err)
{
	struct http_client *c = x->client;

	if (x->sent)
		return err_set(err, ERR_INVALID, 0, "the request is over");
	if (!c->s)
		return err_set(err, ERR_UNAVAILABLE, 0, "the connection is closed");
	if (body_out_send(&x->out, &c->out, piece, err) < 0)
		return -1;
	watch_output(c);
	return 0;
}

void http_ask_finish(struct http_exchange *x)
{
	struct http_client *c = x->client;
	struct err why;

	if (!c->s || x->sent)
		return;
	if (body_out_finish(&x->out, &c->out, &why) < 0) {
		if (why.code == ERR_UNAVAILABLE) /* broken: what arrived before comes first */
			return;
		c->why = why;
		client_drop_stream(c, false);
		timer_start(&c->later, 0);
		return;
	}
	x->sent = true;
	watch_output(c);
	update_timer(c, false);
}

size_t http_ask_queued(struct http_exchange *x)
{
	return x->client->s ? http_out_queued(&x->client->out) : 0;
}

void http_ask_pause(struct http_exchange *x, bool on)
{
	struct http_client *c = x->client;

	x->paused = on;
	if (on && !c->feeding)
		settle(c, false);
	else if (!c->feeding)
		timer_start(&c->later, 0);
}

void http_ask_cancel(struct http_exchange *x)
{
	struct http_client *c = x->client;

	assert(c->x == x);
	c->x = NULL;
	client_drop_stream(c, false);
	exchange_free(x);
}

int http_ask_take(struct http_exchange *x, struct stream **ret, struct buf *ret_early,
		  struct err *err)
{
	struct http_client *c = x->client;

	assert(c->feeding && c->x == x && x->head.status == 101);
	*ret_early = BUF_MAX(HTTP_INPUT_MAX);
	if (buf_add(ret_early, c->view, err) < 0)
		return err_wrap(err, "take a switched connection");
	http_out_flush(&c->out);
	http_out_done(&c->out);
	*ret = c->s;
	stream_set_user(c->s, NULL);
	c->s = NULL;
	client_drop_stream(c, false);
	c->x = NULL;
	exchange_free(x);
	return 0;
}
