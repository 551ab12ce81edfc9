/* h2_request.c - see h2_request.h. */
#include "http/h2_request.h"

#include <errno.h>

#include "base/list.h"
#include "base/random.h"
#include "http/h2_body.h"
#include "http/h2_response.h"
#include "http/h2_session.h"
#include "http/h2_tunnel.h"
#include "wire/base64.h"

static const struct http_limits *limits_of(const struct h2_request *rq)
{
	return &rq->conn->conn.server->limits;
}

/* --- life ------------------------------------------------------------------------------------ */

static void on_input_timeout(struct timer *t);
static void on_output_timeout(struct timer *t);

struct h2_request *h2_request_new(struct h2_conn *c, int32_t id)
{
	struct h2_request *rq = calloc(1, sizeof(*rq));
	struct loop *l = c->conn.server->loop;

	if (!rq)
		return NULL;
	http_request_begin(&rq->base, &h2_request_ops, &c->conn);
	rq->conn = c;
	rq->id = id;
	rq->in = (struct buf){ .max = H2_KEPT_MAX, .secret = c->secret };
	rq->out = BUF_MAX(2 * STREAM_QUEUE_MAX);
	timer_init(&rq->input, l, on_input_timeout);
	timer_init(&rq->output, l, on_output_timeout);
	list_add(&c->requests, rq);
	c->n_requests++;
	h2_past_opened(&c->past, (uint32_t)id);
	return rq;
}

/* Out of its connection, which lives on or not. */
static void leave(struct h2_request *rq)
{
	struct h2_conn *c = rq->conn;

	h2_body_give_back(rq, h2_body_len(rq));
	h2_response_forget(rq);
	if (rq->due_prev)
		c->n_due--;
	queue_remove_by(&c->due, rq, due_next, due_prev);
	list_remove(rq);
	c->n_requests--;
	timer_stop(&rq->input);
	timer_stop(&rq->output);
	rq->conn = NULL;
}

void h2_request_free(struct h2_request *rq)
{
	http_request_over(&rq->base);
	if (rq->conn)
		leave(rq);
	timer_stop(&rq->input);
	h2_head_done(&rq->head_in);
	buf_done(&rq->in);
	buf_done(&rq->out);
	free(rq);
}

void h2_request_due(struct h2_request *rq)
{
	struct h2_conn *c = rq->conn;

	if (!c)
		return;
	if (!rq->due_prev) {
		queue_add_by(&c->due, rq, due_next, due_prev);
		c->n_due++;
	}
	h2_soon(c);
}

/* --- times ----------------------------------------------------------------------------------- */

/* A body that is wanted and does not come; or one that nobody wants, behind an answer. */
static uint64_t input_ms(const struct h2_request *rq)
{
	if (rq->closed || rq->ended || rq->is_tunnel)
		return 0;
	if (rq->detached)
		return limits_of(rq)->head_ms;
	return rq->started && !rq->paused && !rq->base.rests ? limits_of(rq)->body_stall_ms : 0;
}

void h2_request_watch_input(struct h2_request *rq, bool anew)
{
	uint64_t ms = input_ms(rq);

	if (ms == 0)
		timer_stop(&rq->input);
	else if (anew || !rq->input.active)
		timer_start(&rq->input, ms);
}

static bool may_rest(const struct h2_request *rq)
{
	return (rq->base.rests || rq->is_tunnel) && !rq->detached;
}

/* An answer that is begun, and does not move: its window is held at zero. */
void h2_request_watch_output(struct h2_request *rq)
{
	uint64_t ms = limits_of(rq)->write_stall_ms;
	bool waits = rq->begun && !rq->sent_end && (h2_response_len(rq) > 0 || rq->finished);

	if (rq->closed || ms == 0 || !waits || may_rest(rq))
		timer_stop(&rq->output);
	else if (!rq->output.active) {
		rq->taken_seen = rq->taken;
		timer_start(&rq->output, ms);
	}
}

bool h2_request_waits(const struct h2_request *rq)
{
	if (!rq->presented || rq->detached)
		return true;
	return rq->started && !rq->paused && !rq->ended && !rq->base.rests && !rq->is_tunnel;
}

/* --- the head -------------------------------------------------------------------------------- */

bool h2_request_field(struct h2_request *rq, struct bytes name, struct bytes value)
{
	size_t cost = name.len + value.len + H2_FIELD_COST;

	if (rq->presented) { /* trailers, which are dropped */
		rq->trailers += cost;
		return rq->trailers <= H2_LIST_GROSS;
	}
	if (rq->bad.code == ERR_NONE) {
		(void)!h2_head_add(&rq->head_in, name, value, &rq->bad);
		return true;
	}
	rq->head_in.list += cost;
	return rq->head_in.list <= H2_LIST_GROSS;
}

static void make_key(char ret[static H2_KEY_LEN])
{
	AUTO(buf_done) struct buf text = BUF_MAX(2 * H2_KEY_LEN);
	uint8_t raw[16];
	struct err err;

	random_fill(raw, sizeof(raw));
	memset(ret, 'A', H2_KEY_LEN);
	if (base64_encode((struct bytes){ raw, sizeof(raw) }, &text, &err) == 0 &&
	    text.len == H2_KEY_LEN)
		memcpy(ret, text.ptr, H2_KEY_LEN);
}

static unsigned int status_of(const struct err *err)
{
	if (err->code == ERR_EXHAUSTED)
		return err->sys == ENOMEM ? 500 : 431;
	return err->code == ERR_NOT_FOUND ? 501 : 400;
}

/* More is owed to this client than it takes, so it gets no further answers for now. */
static bool is_full(const struct h2_conn *c)
{
	return c->out_held > H2_OUT_MAX ||
	       (c->conn.server->h2.out_held > H2_OUT_ALL_MAX && c->out_held > H2_OUT_SHARE);
}

static void refuse_stream(struct h2_request *rq)
{
	struct h2_conn *c = rq->conn;

	h2_request_detach(rq);
	h2_session_reset(rq, NGHTTP2_REFUSED_STREAM);
	if (!h2_calm_reset(&c->calm, loop_now_ms(c->conn.server->loop)))
		h2_broke(c, ERR_EXHAUSTED, "too many streams had to be refused");
}

/* Answered, and counted: who goes on like that is as bad as one who has to be reset. */
static void refuse_head(struct h2_request *rq)
{
	struct h2_conn *c = rq->conn;

	http_fail(&rq->base, status_of(&rq->bad), rq->bad.msg);
	if (!h2_calm_reset(&c->calm, loop_now_ms(c->conn.server->loop)))
		h2_broke(c, ERR_EXHAUSTED, "too many heads had to be refused");
}

static void parse(struct h2_request *rq)
{
	struct bytes key = { (const uint8_t *)rq->key, H2_KEY_LEN };

	if (h2_head_is_tunnel(&rq->head_in))
		make_key(rq->key);
	if (rq->bad.code == ERR_NONE)
		(void)!h2_head_end(&rq->head_in, rq->ended, key, &rq->base.head, &rq->bad);
	if (rq->bad.code != ERR_NONE)
		http1_head_reset(&rq->base.head);
	h2_length_init(&rq->promised, &rq->base.head);
	rq->continue_due = !rq->ended && http1_expects_continue(&rq->base.head);
}

void h2_request_present(struct h2_request *rq)
{
	struct h2_conn *c = rq->conn;
	struct http_server *sv = c->conn.server;

	rq->presented = true;
	if (rq->closed || rq->detached)
		return;
	if (is_full(c)) {
		refuse_stream(rq);
		return;
	}
	parse(rq);
	sv->counts[HTTP_2].requests++;
	h2_calm_earn(&c->calm, H2_CALM_REQUEST);
	if (rq->bad.code != ERR_NONE) {
		refuse_head(rq);
		return;
	}
	sv->ops->on_request(sv, &rq->base);
	if (!c->s || rq->detached || rq->is_tunnel || rq->base.handler)
		return;
	if (rq->base.responded)
		http_abort(&rq->base);
	else
		http_fail(&rq->base, 500, "the request was not handled");
}

/* --- what is due ----------------------------------------------------------------------------- */

/* Closed since both sides have said all: nothing failed. */
static bool is_clean(const struct h2_request *rq)
{
	return rq->ended && rq->sent_end && rq->code == NGHTTP2_NO_ERROR;
}

static void tell_closed(struct h2_request *rq)
{
	struct http_handler *h = rq->detached ? NULL : rq->base.handler;
	struct err why = rq->why;

	if (rq->is_tunnel && !rq->detached) {
		if (is_clean(rq))
			h2_tunnel_tell(rq);
		else
			h2_tunnel_fail(rq);
		return;
	}
	if (h && is_clean(rq)) /* an answer without a body: the handler will say that it is over */
		return;
	h2_request_free(rq);
	if (h)
		h->ops->on_gone(h, &why);
}

static bool tell_drain(struct h2_request *rq)
{
	struct http_handler *h = rq->base.handler;

	if (!rq->waits_drain || h2_response_len(rq) > STREAM_LOW_WATER)
		return false;
	rq->waits_drain = false;
	if (rq->is_tunnel)
		h2_tunnel_drained(rq);
	else if (h && h->ops->on_drain)
		h->ops->on_drain(h);
	return true;
}

/* One thing at a time: after each of them all may be different. */
void h2_request_tell(struct h2_request *rq)
{
	if (rq->closed) {
		tell_closed(rq);
		return;
	}
	h2_request_watch_input(rq, false);
	h2_request_watch_output(rq);
	if (rq->detached || !rq->presented)
		return;
	if (rq->waits_drain && h2_response_len(rq) <= STREAM_LOW_WATER)
		h2_request_due(rq); /* and the body afterwards */
	if (tell_drain(rq))
		return;
	if (rq->is_tunnel)
		h2_tunnel_tell(rq);
	else
		h2_body_tell(rq);
}

void h2_request_gone(struct h2_request *rq, const struct err *why)
{
	struct http_handler *h = rq->detached ? NULL : rq->base.handler;

	rq->closed = true;
	rq->why = *why;
	if (rq->is_tunnel && !rq->detached) {
		leave(rq);
		h2_tunnel_fail(rq);
		return;
	}
	h2_request_free(rq);
	if (h)
		h->ops->on_gone(h, why);
}

/* End the request from our side, but for the connection. */
void h2_request_end(struct h2_request *rq, const struct err *why, unsigned int status)
{
	struct http_handler *h = rq->base.handler;

	if (status != 0 && !rq->base.responded)
		http_fail(&rq->base, status, why->msg);
	else
		http_abort(&rq->base);
	if (h)
		h->ops->on_gone(h, why);
}

static void on_input_timeout(struct timer *t)
{
	struct h2_request *rq = CONTAINER_OF(t, struct h2_request, input);
	struct err why;

	if (rq->is_tunnel) {
		h2_tunnel_later(rq);
	} else if (rq->detached) {
		h2_session_reset(rq, NGHTTP2_NO_ERROR);
	} else {
		err_set(&why, ERR_TIMEOUT, 0, "the request did not arrive in time");
		h2_request_end(rq, &why, 408);
	}
}

static void on_output_timeout(struct timer *t)
{
	struct h2_request *rq = CONTAINER_OF(t, struct h2_request, output);
	struct err why;

	if (rq->taken != rq->taken_seen) {
		h2_request_watch_output(rq);
		return;
	}
	if (rq->detached) {
		h2_session_reset(rq, NGHTTP2_CANCEL);
		return;
	}
	err_set(&why, ERR_TIMEOUT, 0, "the client does not take its answer");
	h2_request_end(rq, &why, 0);
}

/* --- notes ----------------------------------------------------------------------------------- */

void h2_request_closed(struct h2_request *rq, uint32_t code)
{
	rq->closed = true;
	rq->code = code;
	h2_past_over(&rq->conn->past, (uint32_t)rq->id, !rq->ended && !rq->reset_by_client);
	timer_stop(&rq->input);
	timer_stop(&rq->output);
	err_set(&rq->why, ERR_UNAVAILABLE, 0, "the stream was closed: %s",
		nghttp2_http2_strerror(code));
	h2_request_due(rq);
}

void h2_request_sent_end(struct h2_request *rq)
{
	rq->sent_end = true;
	h2_request_due(rq);
}

void h2_request_detach(struct h2_request *rq)
{
	rq->detached = true;
	rq->base.handler = NULL;
	if (!rq->conn)
		return;
	h2_body_drop(rq); /* nobody wants it any more */
	h2_request_due(rq);
}
