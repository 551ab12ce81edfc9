/* h1_conn.c - one HTTP/1.1 connection of a server: its life, what arrives, its times. */
#include "http/h1_conn.h"

#include <assert.h>
#include <errno.h>

#include "http/h1_response.h"
#include "http/refuse.h"

/* A part of a head, or of the next requests, may be kept when a whole read comes on top. */
static_assert((int)HTTP_INPUT_MAX == (int)HTTP1_HEAD_MAX + (int)LOOP_READ_MAX, "input must fit");

enum { PIPELINE_MAX = HTTP1_HEAD_MAX }; /* kept while a request is answered, in bytes */

void h1_request_free(struct h1_request *rq)
{
	if (!rq)
		return;
	http_request_over(&rq->base);
	buf_done(&rq->head_bytes);
	free(rq);
}

void h1_leave_stream(struct h1_conn *c)
{
	c->state = H1_CLOSED;
	c->s = NULL;
	http_out_done(&c->out);
	timer_stop(&c->input);
	timer_stop(&c->output);
	h1_request_free(c->rq);
	c->rq = NULL;
	http_conn_leave(&c->conn);
	timer_start(&c->later, 0);
}

void h1_close(struct h1_conn *c, bool graceful)
{
	http_out_flush(&c->out); /* what was written before a reset may still arrive before it */
	if (graceful)
		stream_close(c->s);
	else
		stream_abort(c->s);
	h1_leave_stream(c);
}

static void h1_refuse(struct h1_conn *c, unsigned int status, const char *message)
{
	AUTO(buf_done) struct buf out = BUF_MAX(HTTP_REFUSAL_MAX);
	struct err err;

	h1_close(c, http_put_refusal(&out, status, message, &err) == 0 &&
			    http_out_write_buf(&c->out, &out, &err) == 0);
}

/* End the request from our side: tell the handler; answer `status` if nothing was answered yet and
 * it is not 0; close. */
static void h1_gone(struct h1_conn *c, const struct err *why, unsigned int status)
{
	struct h1_request *rq = c->rq;
	struct http_handler *h = rq ? rq->base.handler : NULL;
	bool may_answer = status != 0 && !(rq && rq->base.responded);

	if (may_answer && rq)
		rq->base.status = status;
	if (may_answer)
		h1_refuse(c, status, why->msg);
	else
		h1_close(c, false);
	if (h)
		h->ops->on_gone(h, why);
}

/* --- what arrives, step by step -------------------------------------------------------------- */

/* The next request waits until the client has taken the answers before it: a client that only asks
 * does not make us hold answers without end. */
static bool h1_blocked(struct h1_conn *c)
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
	http_request_begin(&rq->base, &h1_request_ops, &c->conn);
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

	sv->counts[HTTP_1_1].connections += !c->served;
	sv->counts[HTTP_1_1].requests++;
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

/* Is it, or may it become, the preface of HTTP/2? No method of ours is called PRI, so four bytes
 * say it; if the others are wrong, HTTP/2 says so. */
static bool begins_h2(struct h1_conn *c)
{
	const struct bytes pri = BYTES_LIT("PRI ");

	return !c->served && c->conn.server->open_h2 &&
	       bytes_eq(bytes_head(c->view, pri.len), bytes_head(pri, c->view.len));
}

/* "INVALID CONNECTION PREFACE": three words or more, and the last is no version of HTTP. Where two
 * versions are spoken nobody knows in which of them to say no. */
static bool is_no_http(const struct h1_conn *c, struct bytes head)
{
	struct bytes line, word;
	size_t n = 1;

	if (c->served || !c->conn.server->open_h2 || !bytes_cut(&head, '\r', &line))
		return false;
	while (bytes_cut(&line, ' ', &word))
		n++;
	return n >= 3 && !bytes_eq_nocase(bytes_head(line, 4), BYTES_LIT("HTTP"));
}

static void hand_to_h2(struct h1_conn *c)
{
	struct http_server *sv = c->conn.server;
	struct net_peer peer = c->conn.peer;
	struct stream *s = c->s;
	struct err err;

	stream_set_user(s, NULL);
	h1_leave_stream(c);
	/* without memory for it the stream is reset, and that is all there is to say */
	(void)!sv->open_h2(sv, s, peer.at.len > 0 ? &peer : NULL, c->view, &err);
}

static bool step_head(struct h1_conn *c)
{
	struct h1_request *rq;
	struct bytes head;
	struct err err;
	size_t used;

	if (c->view.len == 0 || h1_blocked(c))
		return false;
	if (begins_h2(c)) {
		if (c->view.len >= 4)
			hand_to_h2(c);
		return false;
	}
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
	if (!rq && is_no_http(c, head)) {
		h1_close(c, true);
		return false;
	}
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
	else if (rq->end_told && h->ops->on_body_end)
		h->ops->on_body_end(h);
	else if (!rq->end_told && h->ops->on_body)
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

/* False: waits for something. */
static bool h1_step(struct h1_conn *c)
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

/* --- times, and the stream ------------------------------------------------------------------ */

/* What the input timer times is a function of the state. */
static enum h1_wait waits_for(struct h1_conn *c)
{
	struct h1_request *rq = c->rq;

	switch (c->state) {
	case H1_HEAD:
		if (h1_blocked(c))
			return H1_WAIT_NOTHING;
		return c->served && c->in.len == 0 ? H1_WAIT_IDLE : H1_WAIT_HEAD;
	case H1_REQUEST:
		return rq->started && !rq->paused && !rq->body.over && !rq->base.rests
			       ? H1_WAIT_BODY
			       : H1_WAIT_NOTHING;
	case H1_DRAIN:
		return H1_WAIT_DRAIN;
	case H1_CLOSED:
		return H1_WAIT_NOTHING;
	}
	abort();
}

static uint64_t idle_ms(const struct h1_conn *c)
{
	const struct http_server *sv = c->conn.server;

	return sv->draining ? sv->limits.last_ms : sv->limits.idle_ms;
}

static void update_timer(struct h1_conn *c, bool new_bytes)
{
	const struct http_limits *lim = &c->conn.server->limits;
	const uint64_t ms[] = {
		[H1_WAIT_NOTHING] = 0,          [H1_WAIT_IDLE] = idle_ms(c),
		[H1_WAIT_HEAD] = lim->head_ms,  [H1_WAIT_BODY] = lim->body_stall_ms,
		[H1_WAIT_DRAIN] = lim->head_ms,
	};
	enum h1_wait now = waits_for(c);

	c->conn.idle = now == H1_WAIT_IDLE;
	http_conn_waits(&c->conn, now != H1_WAIT_NOTHING || c->state != H1_REQUEST, now != c->wait);
	if (now == c->wait && !(now == H1_WAIT_BODY && new_bytes))
		return;
	c->wait = now;
	if (ms[now] > 0)
		timer_start(&c->input, ms[now]);
	else
		timer_stop(&c->input);
}

/* Whether we read is a function of the state, too. Bytes of a body that wait for the handler to go
 * on stop us; so do too many of the next request. */
void h1_update_reading(struct h1_conn *c)
{
	struct h1_request *rq = c->rq;
	bool on = !c->ended && !c->more;

	if (c->state == H1_CLOSED)
		return;
	if (c->state == H1_HEAD && h1_blocked(c))
		on = on && c->in.len <= PIPELINE_MAX;
	if (c->state == H1_REQUEST && rq->body.over)
		on = on && c->in.len <= PIPELINE_MAX;
	if (c->state == H1_REQUEST && !rq->body.over)
		on = on && rq->started && !rq->paused && c->in.len == 0;
	stream_read(c->s, on);
}

static void settle(struct h1_conn *c, bool new_bytes)
{
	if (c->state == H1_HEAD && c->ended && !c->more && !h1_blocked(c))
		h1_close(c, true);
	if (c->state == H1_CLOSED)
		return;
	if (c->in.len == 0) {
		buf_done(&c->in); /* an idle connection holds nothing */
		c->in = (struct buf){ .max = HTTP_INPUT_MAX, .secret = c->secret };
	}
	update_timer(c, new_bytes);
	h1_update_reading(c);
}

static void feed(struct h1_conn *c, struct bytes in)
{
	if (c->secret)
		loop_forget(c->conn.server->loop);
	c->view = in;
	c->feeding = true;
	c->more = false;
	c->turn = HTTP_TURN;
	for (size_t before = in.len; h1_step(c); before = c->view.len)
		if (http_turn_used(&c->turn, before, c->view.len)) {
			c->more = c->state != H1_CLOSED;
			break;
		}
	c->feeding = false;
	if (c->more) /* reading is off meanwhile */
		timer_start(&c->later, 0);
}

/* Use what is kept. */
static void feed_kept(struct h1_conn *c, bool new_bytes)
{
	feed(c, buf_view(&c->in));
	if (c->state != H1_CLOSED)
		buf_drop(&c->in, c->in.len - c->view.len);
	settle(c, new_bytes);
}

static struct h1_conn *of(struct stream_user *u)
{
	return CONTAINER_OF(u, struct h1_conn, user);
}

static void out_of_memory(struct h1_conn *c, const struct err *err)
{
	h1_gone(c, err, 0);
}

static void on_data(struct stream_user *u, struct bytes in)
{
	struct h1_conn *c = of(u);
	struct err err;

	if (c->in.len > 0) {
		if (buf_add(&c->in, in, &err) < 0)
			out_of_memory(c, &err);
		else
			feed_kept(c, true);
		return;
	}
	feed(c, in); /* straight from the stream: a body is not copied */
	if (c->state != H1_CLOSED && buf_add(&c->in, c->view, &err) < 0)
		out_of_memory(c, &err);
	else
		settle(c, true);
}

static void on_end(struct stream_user *u)
{
	struct h1_conn *c = of(u);
	struct err why;

	c->ended = true;
	if (c->state == H1_REQUEST && !c->rq->body.over) {
		err_set(&why, ERR_UNAVAILABLE, 0, "the client closed inside the body");
		h1_gone(c, &why, 0);
	} else if (c->state == H1_REQUEST && !c->conn.server->limits.half_close) {
		err_set(&why, ERR_UNAVAILABLE, 0, "the client closed");
		h1_gone(c, &why, 0);
	} else if (c->state == H1_DRAIN) {
		h1_close(c, true);
	}
	settle(c, false);
}

static void on_drain(struct stream_user *u)
{
	struct h1_conn *c = of(u);
	struct http_handler *h = c->state == H1_REQUEST ? c->rq->base.handler : NULL;

	if (h && h->ops->on_drain)
		h->ops->on_drain(h);
	if (c->state == H1_HEAD)
		feed_kept(c, false);
}

static void on_fail(struct stream_user *u, const struct err *err)
{
	h1_gone(of(u), err, 0);
}

static void on_input_timeout(struct timer *t)
{
	struct h1_conn *c = CONTAINER_OF(t, struct h1_conn, input);
	struct err why;

	err_set(&why, ERR_TIMEOUT, 0, "the request did not arrive in time");
	switch (c->wait) {
	case H1_WAIT_IDLE:
	case H1_WAIT_DRAIN:
		h1_close(c, true);
		break;
	case H1_WAIT_HEAD:
		if (c->in.len == 0)
			h1_close(c, true);
		else
			h1_refuse(c, 408, why.msg);
		break;
	case H1_WAIT_BODY:
		h1_gone(c, &why, 408);
		break;
	case H1_WAIT_NOTHING:
		break;
	}
}

static bool h1_rests(const struct h1_conn *c)
{
	return c->rq && c->rq->base.rests;
}

void h1_watch_output(struct h1_conn *c)
{
	uint64_t ms = c->conn.server->limits.write_stall_ms;

	/* what the end of the turn sends is looked at then */
	if (ms == 0 || c->output.active || stream_queued(c->s) == 0 || h1_rests(c))
		return;
	c->sent_seen = stream_sent(c->s);
	timer_start(&c->output, ms);
}

static void on_slow(struct http_out *o)
{
	h1_watch_output(CONTAINER_OF(o, struct h1_conn, out));
}

static void on_output_timeout(struct timer *t)
{
	struct h1_conn *c = CONTAINER_OF(t, struct h1_conn, output);
	struct err why;

	if (stream_queued(c->s) == 0 || stream_sent(c->s) != c->sent_seen || h1_rests(c)) {
		h1_watch_output(c);
		return;
	}
	err_set(&why, ERR_TIMEOUT, 0, "the client does not take its answer");
	h1_gone(c, &why, 0);
}

static void on_later(struct timer *t)
{
	struct h1_conn *c = CONTAINER_OF(t, struct h1_conn, later);

	if (c->state != H1_CLOSED) {
		feed_kept(c, false);
		return;
	}
	buf_done(&c->in);
	free(c);
}

void h1_kick(struct h1_conn *c)
{
	if (!c->feeding)
		timer_start(&c->later, 0);
}

static void conn_kill(struct http_conn *conn, const struct err *why)
{
	h1_gone(CONTAINER_OF(conn, struct h1_conn, conn), why, 0);
}

/* Its answers say so from now on (plan_keep() in h1_response.c). */
static void conn_drain(struct http_conn *conn)
{
	struct h1_conn *c = CONTAINER_OF(conn, struct h1_conn, conn);

	if (c->wait == H1_WAIT_IDLE && idle_ms(c) > 0)
		timer_start(&c->input, idle_ms(c));
}

int h1_conn_open(struct http_server *sv, struct stream *s, const struct net_peer *peer,
		 struct err *err)
{
	static const struct stream_user_ops user_ops = { on_data, on_end, on_drain, on_fail };
	static const struct http_conn_ops conn_ops = { conn_kill, conn_drain };
	struct h1_conn *c = calloc(1, sizeof(*c));

	if (!c) {
		stream_abort(s);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate connection");
	}
	c->s = s;
	http_out_open(&c->out, s, on_slow);
	c->user.ops = &user_ops;
	timer_init(&c->input, sv->loop, on_input_timeout);
	timer_init(&c->output, sv->loop, on_output_timeout);
	timer_init(&c->later, sv->loop, on_later);
	http_conn_join(&c->conn, &conn_ops, sv);
	if (peer)
		c->conn.peer = *peer;
	stream_set_user(s, &c->user);
	settle(c, false);
	return 0;
}
