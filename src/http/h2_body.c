/* h2_body.c - the body of a request, from frames to its handler: see h2_body.h. */
#include "http/h2_body.h"

#include "http/h2_request.h"
#include "http/h2_session.h"

size_t h2_body_len(const struct h2_request *rq)
{
	return rq->in.len - rq->in_at;
}

/* What waited for the handler is given back to the window that all share. */
void h2_body_give_back(struct h2_request *rq, size_t n)
{
	struct h2_conn *c = rq->conn;
	size_t paid = n < rq->paid ? n : rq->paid;

	rq->paid -= paid;
	c->held -= paid;
	c->conn.server->h2.held -= paid;
	if (c->s)
		h2_session_used_by_all(c, n - paid);
}

static void too_large(struct h2_request *rq)
{
	struct err why;

	err_set(&why, ERR_EXHAUSTED, 0, "the body is over %llu bytes",
		(unsigned long long)rq->body_max);
	h2_request_end(rq, &why, 413);
}

static bool exceeds(const struct h2_request *rq, size_t more)
{
	uint64_t n = rq->seen + more;

	return n > rq->body_max ||
	       (rq->promised.has_length && !rq->ended && rq->base.head.length > rq->body_max);
}

/* Who uses what comes gets more of it at a time. */
static void widen(struct h2_request *rq)
{
	struct h2_conn *c = rq->conn;
	struct http_server *sv = c->conn.server;

	if (rq->closed || rq->ended || rq->wide || rq->seen < H2_WINDOW)
		return;
	rq->wide = true;
	h2_session_widen(c, rq->id);
	if (c->wide || sv->h2.wide >= H2_WIDE_MAX)
		return;
	c->wide = true;
	sv->h2.wide++;
	h2_session_widen(c, 0);
}

/* `n` bytes were told, or thrown away. */
static void used(struct h2_request *rq, size_t n)
{
	rq->seen += n;
	h2_session_used(rq, n);
	widen(rq);
	h2_calm_moved(&rq->conn->calm, n);
}

static void tell_piece(struct h2_request *rq, struct bytes piece)
{
	struct http_handler *h = rq->base.handler;

	if (exceeds(rq, piece.len)) {
		too_large(rq);
		return;
	}
	used(rq, piece.len);
	h2_request_watch_input(rq, true);
	if (h->ops->on_body)
		h->ops->on_body(h, piece);
}

/* An empty buffer is no buffer; and what was told is not moved along for ever. */
static void drop_told(struct h2_request *rq)
{
	bool secret = rq->in.secret;

	if (rq->in_at == rq->in.len) {
		buf_done(&rq->in);
		rq->in = (struct buf){ .max = H2_KEPT_MAX, .secret = secret };
		rq->in_at = 0;
	} else if (rq->in_at >= H2_WINDOW) {
		buf_drop(&rq->in, rq->in_at);
		rq->in_at = 0;
	}
}

void h2_body_drop(struct h2_request *rq)
{
	size_t n = h2_body_len(rq);

	if (n == 0)
		return;
	rq->in_at = rq->in.len;
	drop_told(rq);
	h2_body_give_back(rq, n);
	used(rq, n);
}

static void keep(struct h2_request *rq, struct bytes piece)
{
	struct h2_conn *c = rq->conn;
	size_t *all = &c->conn.server->h2.held;
	struct err err;

	if (buf_add(&rq->in, piece, &err) < 0) {
		h2_broke(c, ERR_EXHAUSTED, "no memory for a body");
		return;
	}
	if (c->held + piece.len > H2_HELD_MAX || *all + piece.len > H2_HELD_ALL_MAX)
		return; /* the window pays for it until it is told */
	rq->paid += piece.len;
	c->held += piece.len;
	*all += piece.len;
	h2_session_used_by_all(c, piece.len);
}

/* The answer is complete, the body is not: some clients do not look for the answer before they
 * have sent all of it. */
static void throw_away(struct h2_request *rq, size_t n)
{
	h2_session_used_by_all(rq->conn, n);
	used(rq, n);
	if (rq->sent_end && rq->seen > rq->conn->conn.server->limits.drain_max)
		h2_session_reset(rq, NGHTTP2_NO_ERROR);
}

static bool may_tell(const struct h2_request *rq)
{
	return !rq->detached && rq->started && !rq->paused && rq->base.handler;
}

void h2_body_piece(struct h2_request *rq, struct bytes piece)
{
	struct h2_conn *c = rq->conn;
	/* with its last piece a stream may be closed, for all was said */
	bool lost = rq->closed && (rq->detached || rq->code != NGHTTP2_NO_ERROR);
	struct err why;

	if (lost || !h2_length_take(&rq->promised, piece.len)) {
		h2_session_used_by_all(c, piece.len);
		if (rq->closed || rq->detached)
			return;
		err_set(&why, ERR_INVALID, 0, "the body is longer than was promised");
		h2_request_end(rq, &why, 0);
		return;
	}
	if (rq->detached) {
		throw_away(rq, piece.len);
		return;
	}
	if (h2_body_len(rq) > 0 || rq->is_tunnel || !may_tell(rq)) {
		keep(rq, piece);
		if (rq->is_tunnel)
			h2_request_due(rq);
		return;
	}
	rq->continue_due = false;
	h2_session_used_by_all(c, piece.len);
	tell_piece(rq, piece);
}

void h2_body_ended(struct h2_request *rq)
{
	struct err why;

	rq->ended = true;
	timer_stop(&rq->input);
	if (!h2_length_end(&rq->promised) && !rq->detached) {
		err_set(&why, ERR_INVALID, 0, "the body is shorter than was promised");
		h2_request_end(rq, &why, 0);
		return;
	}
	h2_request_due(rq);
}

/* Not more at a time than a stream reads: whoever passes it on has room for so much. */
struct buf h2_body_take_in(struct h2_request *rq)
{
	size_t left = h2_body_len(rq), n = left < LOOP_READ_MAX ? left : LOOP_READ_MAX;
	struct buf piece = { .max = LOOP_READ_MAX, .secret = rq->in.secret };
	struct err err;

	if (buf_add(&piece, bytes_head(bytes_tail(buf_view(&rq->in), rq->in_at), n), &err) < 0) {
		h2_broke(rq->conn, ERR_INTERNAL, "no memory for a body");
		return piece;
	}
	rq->in_at += n;
	drop_told(rq);
	h2_body_give_back(rq, n);
	used(rq, n);
	return piece;
}

static void tell_kept(struct h2_request *rq)
{
	AUTO(buf_done) struct buf piece = { 0 };
	struct http_handler *h = rq->base.handler;

	if (exceeds(rq, h2_body_len(rq))) {
		too_large(rq);
		return;
	}
	piece = h2_body_take_in(rq);
	h2_request_watch_input(rq, true);
	if (h->ops->on_body && piece.len > 0)
		h->ops->on_body(h, buf_view(&piece));
}

static void tell_body(struct h2_request *rq)
{
	struct http_handler *h = rq->base.handler;

	if (exceeds(rq, 0)) {
		too_large(rq);
	} else if (h2_body_len(rq) > 0) {
		tell_kept(rq);
	} else if (rq->ended && !rq->end_told) {
		rq->end_told = true;
		if (h->ops->on_body_end)
			h->ops->on_body_end(h);
	} else if (rq->continue_due && !rq->base.responded) {
		rq->continue_due = false;
		h2_session_continue(rq);
	}
}

void h2_body_tell(struct h2_request *rq)
{
	if (!may_tell(rq))
		return;
	if (h2_body_len(rq) > 0)
		h2_request_due(rq); /* the rest, and its end */
	tell_body(rq);
}
