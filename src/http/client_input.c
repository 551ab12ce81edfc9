/* client_input.c - what a server answers, step by step. */
#include <assert.h>

#include "http/client_inside.h"

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
	if (piece.len > 0)
		x->reply->ops->on_body(x->reply, piece);
	else
		complete(c);
	return true;
}

bool client_step(struct http_client *c)
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

void client_on_end(struct http_client *c)
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
