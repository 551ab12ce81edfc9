/* call.c - one small request, one small answer, one callback. */
#include "http/call.h"

static struct http_call *of(struct http_reply *r)
{
	return CONTAINER_OF(r, struct http_call, reply);
}

static void release(struct http_call *c)
{
	if (c->owned)
		http_client_close(c->owned);
	c->owned = NULL;
	c->exchange = NULL;
}

void http_call_cancel(struct http_call *c)
{
	if (c->exchange)
		http_ask_cancel(c->exchange);
	release(c);
	buf_done(&c->body);
}

/* Everything of the call is over before the callback, which may free it. */
static void done(struct http_call *c, const struct err *err)
{
	AUTO(buf_done) struct buf body = c->body;
	struct http_call_result ret = { err ? NULL : c->head, buf_view(&body) };

	c->body = (struct buf){ 0 };
	release(c);
	c->on_done(c, &ret, err);
}

static void on_head(struct http_reply *r, const struct http1_head *head)
{
	of(r)->head = head;
}

static void on_body(struct http_reply *r, struct bytes piece)
{
	struct http_call *c = of(r);
	struct err err;

	if (buf_add(&c->body, piece, &err) == 0)
		return;
	err_wrap(&err, "answer");
	http_ask_cancel(c->exchange);
	done(c, &err);
}

static void on_end(struct http_reply *r)
{
	done(of(r), NULL);
}

static void on_fail(struct http_reply *r, const struct err *err)
{
	done(of(r), err);
}

int http_call_start(struct http_call *c, struct http_client *client, const struct http_ask *ask,
		    http_call_done_fn *on_done, struct err *err)
{
	static const struct http_reply_ops ops = { on_head, on_body, on_end, NULL, on_fail };
	struct http_ask whole = *ask;

	whole.length = 0;
	*c = (struct http_call){ .on_done = on_done, .reply = { &ops } };
	c->body = BUF_MAX(ask->max_answer);
	return http_ask(client, &whole, &c->reply, &c->exchange, err);
}

int http_call_stream(struct http_call *c, struct stream *s, const struct http_ask *ask,
		     http_call_done_fn *on_done, struct err *err)
{
	const struct http_limits limits = HTTP_LIMITS;
	struct http_client *client;

	if (http_client_open(s, &limits, &client, err) < 0)
		return -1;
	if (http_call_start(c, client, ask, on_done, err) < 0) {
		http_client_close(client);
		return -1;
	}
	c->owned = client;
	return 0;
}
