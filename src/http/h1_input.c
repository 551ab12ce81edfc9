/* h1_input.c - what arrives on an HTTP/1.1 connection, step by step. */
#include <assert.h>
#include <errno.h>

#include "http/h1_conn.h"

/* The next request waits until the client has taken the answers before it: a client that only asks
 * does not make us hold answers without end. */
bool h1_blocked(struct h1_conn *c)
{
	return http_out_queued(&c->out) > STREAM_LOW_WATER;
}

/* "GET / HTTP/2.0": well-formed, of a version we do not speak. */
static bool is_other_version(struct bytes head)
{
	struct bytes line, word;

	if (!bytes_cut(&head, '\r', &line))
		return false;
	while (bytes_cut(&line, ' ', &word))
		;
	return line.len == 8 && bytes_starts(line, BYTES_LIT("HTTP/")) && line.ptr[6] == '.' &&
	       !bytes_starts(line, BYTES_LIT("HTTP/1."));
}

/* `head` is empty when its end was not even found. */
static unsigned int status_of(const struct err *err, struct bytes head)
{
	if (err->code == ERR_EXHAUSTED)
		return 431;
	if (err->code == ERR_INTERNAL)
		return 500;
	if (is_other_version(head))
		return 505;
	if (bytes_starts(bytes_str(err->msg), BYTES_LIT("transfer-encoding is not")))
		return 501;
	return 400;
}

/* NULL and *err, or a request. */
static struct h1_request *parse(struct h1_conn *c, struct bytes head, struct err *err)
{
	struct h1_request *rq = calloc(1, sizeof(*rq));

	if (!rq) {
		err_set(err, ERR_INTERNAL, ENOMEM, "allocate request");
		return NULL;
	}
	rq->base.ops = &h1_request_ops;
	rq->base.conn = &c->conn;
	rq->base.peer = c->conn.peer.len > 0 ? &c->conn.peer : NULL;
	rq->conn = c;
	rq->head_bytes = BUF_MAX(HTTP1_HEAD_MAX);
	if (buf_add(&rq->head_bytes, head, err) < 0 ||
	    http1_parse_request(buf_view(&rq->head_bytes), &rq->base.head, err) < 0) {
		h1_request_free(rq);
		return NULL;
	}
	body_in_init(&rq->body, &rq->base.head);
	rq->continue_due = !rq->body.over && http1_expects_continue(&rq->base.head);
	return rq;
}

static void present(struct h1_conn *c, struct h1_request *rq)
{
	struct http_server *sv = c->conn.server;

	c->state = H1_REQUEST;
	c->rq = rq;
	c->served = true;
	c->wait = H1_WAIT_NOTHING;
	timer_stop(&c->input);
	http_conn_waits(&c->conn, false, false);
	sv->ops->on_request(sv, &rq->base);
	if (c->state != H1_REQUEST || c->rq != rq || rq->base.handler)
		return;
	if (rq->base.responded)
		http_abort(&rq->base);
	else
		http_fail(&rq->base, 500, "the request was not handled");
}

static bool step_head(struct h1_conn *c)
{
	struct h1_request *rq;
	struct bytes head;
	struct err err;
	size_t used;

	if (c->view.len == 0 || h1_blocked(c))
		return false;
	switch (http1_head_end(c->view, &c->scanned, &used, &err)) {
	case DECODE_MORE:
		return false;
	case DECODE_BAD:
		h1_refuse(c, status_of(&err, (struct bytes){ 0 }), err.msg);
		return false;
	case DECODE_OK:
		break;
	}
	head = bytes_head(c->view, used);
	c->view = bytes_tail(c->view, used);
	c->scanned = 0;
	rq = parse(c, head, &err);
	if (!rq) {
		h1_refuse(c, status_of(&err, head), err.msg);
		return false;
	}
	c->turn.requests--;
	present(c, rq);
	return true;
}

static void too_large(struct h1_conn *c)
{
	struct err why;

	err_set(&why, ERR_EXHAUSTED, 0, "the body is over %llu bytes",
		(unsigned long long)c->rq->body_max);
	h1_gone(c, &why, 413);
}

static bool exceeds(const struct h1_request *rq)
{
	const struct body_in *b = &rq->body;

	return b->seen > rq->body_max ||
	       (b->kind == HTTP1_BODY_LENGTH && b->left > rq->body_max - b->seen);
}

static void send_continue(struct h1_conn *c)
{
	struct err err;

	c->rq->continue_due = false;
	/* if it cannot be written the stream is broken, and will say so itself */
	(void)!http_out_write(&c->out, BYTES_LIT("HTTP/1.1 100 Continue\r\n\r\n"), &err);
}

static bool step_body(struct h1_conn *c)
{
	AUTO(buf_done) struct buf room = { .max = HTTP_INPUT_MAX, .secret = c->secret };
	struct h1_request *rq = c->rq;
	struct http_handler *h = rq->base.handler;
	struct bytes piece;
	struct err err;

	if (!rq->started || rq->paused || rq->end_told)
		return false;
	if (exceeds(rq)) {
		too_large(c);
		return false;
	}
	if (rq->continue_due && c->view.len == 0 && !rq->base.responded)
		send_continue(c);
	switch (body_in_gather(&rq->body, &c->view, &room, &c->turn.chunks, &piece, &err)) {
	case DECODE_MORE:
		return false;
	case DECODE_BAD:
		h1_gone(c, &err, 400);
		return false;
	case DECODE_OK:
		break;
	}
	rq->continue_due = false;
	rq->end_told = piece.len == 0;
	if (exceeds(rq))
		too_large(c);
	else if (rq->end_told)
		h->ops->on_body_end(h);
	else
		h->ops->on_body(h, piece);
	return true;
}

/* Nobody wants the rest of this body: it stands between us and the next request. */
static bool step_drain(struct h1_conn *c)
{
	struct bytes piece;
	struct err err;
	enum decode d = body_in_next(&c->unread, &c->view, &piece, &err);

	c->turn.chunks -= c->turn.chunks > 0;
	if (d == DECODE_MORE)
		return false;
	if (d == DECODE_BAD || c->unread.seen > c->conn.server->limits.drain_max) {
		h1_close(c, true);
		return false;
	}
	if (piece.len == 0)
		c->state = H1_HEAD;
	return true;
}

bool h1_step(struct h1_conn *c)
{
	switch (c->state) {
	case H1_HEAD:
		return step_head(c);
	case H1_REQUEST:
		return step_body(c);
	case H1_DRAIN:
		return step_drain(c);
	case H1_CLOSED:
		return false;
	}
	abort();
}
