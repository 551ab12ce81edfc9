/* h2_response.c - what leaves as the answer to a request of HTTP/2: see h2_response.h. */
#include "http/h2_response.h"

#include "base/clock.h"
#include "http/date.h"
#include "http/h2_request.h"
#include "http/h2_session.h"
#include "http/h2_tunnel.h"

static struct h2_request *of(struct http_request *rq)
{
	return CONTAINER_OF(rq, struct h2_request, base);
}

size_t h2_response_len(const struct h2_request *rq)
{
	return rq->out.len - rq->out_at;
}

static void count_out(struct h2_request *rq, size_t n, bool more)
{
	struct h2_conn *c = rq->conn;

	c->out_held = more ? c->out_held + n : c->out_held - n;
	c->conn.server->h2.out_held =
		more ? c->conn.server->h2.out_held + n : c->conn.server->h2.out_held - n;
}

void h2_response_taken(struct h2_request *rq, size_t n)
{
	rq->out_at += n;
	rq->taken += n;
	count_out(rq, n, false);
	h2_calm_moved(&rq->conn->calm, n);
	if (h2_response_len(rq) == 0) {
		rq->out.len = rq->out_at = 0;
		h2_calm_earn(&rq->conn->calm, H2_CALM_PIECE);
	}
	if (rq->waits_drain && h2_response_len(rq) <= STREAM_LOW_WATER)
		h2_request_due(rq);
}

void h2_response_forget(struct h2_request *rq)
{
	count_out(rq, h2_response_len(rq), false);
	rq->out.len = rq->out_at = 0;
}

int h2_response_queue(struct h2_request *rq, struct bytes piece, struct err *err)
{
	if (rq->closed || rq->resets)
		return err_set(err, ERR_UNAVAILABLE, 0, "the stream is closed");
	if (piece.len > STREAM_QUEUE_MAX - h2_response_len(rq))
		return err_set(err, ERR_EXHAUSTED, 0, "write queue limit of %d bytes reached",
			       STREAM_QUEUE_MAX);
	if (rq->out_at >
	    h2_response_len(rq)) { /* less is moved than was sent since the last time */
		buf_drop(&rq->out, rq->out_at);
		rq->out_at = 0;
	}
	if (buf_add(&rq->out, piece, err) < 0)
		return -1;
	count_out(rq, piece.len, true);
	if (h2_response_len(rq) > STREAM_LOW_WATER)
		rq->waits_drain = true;
	h2_session_resume(rq);
	if (!rq->output.active)
		h2_request_watch_output(rq);
	return 0;
}

struct lines { /* of an answer; nghttp2 copies them */
	struct buf names;
	nghttp2_nv nv[HTTP_FIELDS_OUT_MAX + 4];
	size_t n;
};

static void add_line(struct lines *l, struct bytes name, struct bytes value)
{
	/* nghttp2's structs are not const, and it does not write to them */
	union {
		const uint8_t *in;
		uint8_t *out;
	} a = { name.ptr }, b = { value.ptr };

	l->nv[l->n++] = (nghttp2_nv){ a.out, b.out, name.len, value.len, NGHTTP2_NV_FLAG_NONE };
}

static bool is_http1_only(struct bytes name)
{
	return bytes_eq(name, BYTES_LIT("upgrade")) || bytes_eq(name, BYTES_LIT("keep-alive")) ||
	       bytes_eq(name, BYTES_LIT("proxy-connection"));
}

static int add_fields(struct lines *l, const struct http_response *r, bool *ret_dated,
		      struct err *err)
{
	struct bytes name;
	size_t room = 0;
	uint8_t *at;

	for (size_t i = 0; i < r->n_fields; i++)
		room += r->fields[i].name.len;
	l->names = BUF_MAX(room);
	if (room > 0 && buf_reserve(&l->names, room, &at, err) < 0)
		return -1;
	for (size_t i = 0; i < r->n_fields; i++) {
		if (h2_lower_name(r->fields[i].name, r->fields[i].value, &l->names, &name, err) < 0)
			return -1;
		if (is_http1_only(name))
			continue;
		*ret_dated = *ret_dated || bytes_eq(name, BYTES_LIT("date"));
		add_line(l, name, r->fields[i].value);
	}
	return 0;
}

int h2_response_head(struct h2_request *rq, const struct http_response *r, bool with_body,
		     struct err *err)
{
	AUTO(buf_done) struct buf status = BUF_MAX(8), length = BUF_MAX(32);
	char date[HTTP_DATE_MAX];
	struct lines l = { 0 };
	bool dated = false;
	int rc = -1;

	if (rq->closed || rq->resets)
		return err_set(err, ERR_UNAVAILABLE, 0, "the stream is closed");
	if (buf_add_u64(&status, r->status, err) < 0)
		return -1;
	add_line(&l, BYTES_LIT(":status"), buf_view(&status));
	if (add_fields(&l, r, &dated, err) < 0)
		goto out;
	if (!dated) {
		http_date_put((int64_t)(clock_wall_ns() / NSEC_PER_SEC), date);
		add_line(&l, BYTES_LIT("date"), bytes_str(date));
	}
	if (http_conn_says_hsts(rq->base.conn, r))
		add_line(&l, BYTES_LIT("strict-transport-security"), BYTES_LIT(HTTP_HSTS));
	if (rq->promise.kind == HTTP1_BODY_LENGTH) {
		if (buf_add_u64(&length, rq->promise.left, err) < 0)
			goto out;
		add_line(&l, BYTES_LIT("content-length"), buf_view(&length));
	}
	rc = h2_session_answer(rq, l.nv, l.n, with_body, err);
	rq->begun = rc == 0;
out:
	buf_done(&l.names);
	return rc;
}

static int h2_respond(struct http_request *base, const struct http_response *r, struct bytes first,
		      struct err *err)
{
	struct h2_request *rq = of(base);
	bool empty;

	/* to a client that asked for a tunnel this would be one */
	if (h2_head_is_tunnel(&rq->head_in) && r->status < 300)
		return err_set(err, ERR_INVALID, 0, "an answer that is no switch of protocols");
	rq->promise = body_out_answer(&rq->base.head, r->status, r->length);
	empty = rq->promise.kind == HTTP1_BODY_NONE || rq->promise.silent ||
		(rq->promise.kind == HTTP1_BODY_LENGTH && rq->promise.left == 0);
	if (!rq->promise.silent && h2_response_queue(rq, first, err) < 0)
		return -1;
	if (h2_response_head(rq, r, !empty, err) < 0) {
		h2_response_forget(rq);
		return -1;
	}
	if (rq->promise.kind == HTTP1_BODY_LENGTH)
		rq->promise.left -= first.len;
	h2_request_watch_output(rq);
	return 0;
}

static int h2_send(struct http_request *base, struct bytes piece, struct err *err)
{
	struct h2_request *rq = of(base);
	struct body_out *b = &rq->promise;

	if (piece.len == 0)
		return 0;
	if (b->kind == HTTP1_BODY_NONE || (b->kind == HTTP1_BODY_LENGTH && piece.len > b->left))
		return err_set(err, ERR_INVALID, 0, "the body is longer than was promised");
	if (!b->silent && h2_response_queue(rq, piece, err) < 0)
		return -1;
	if (b->kind == HTTP1_BODY_LENGTH)
		b->left -= piece.len;
	return 0;
}

static int h2_send_buf(struct http_request *base, struct buf *piece, struct err *err)
{
	AUTO(buf_done) struct buf own = *piece;

	*piece = (struct buf){ 0 };
	return h2_send(base, bytes_tail(buf_view(&own), HTTP_FRONT), err);
}

static enum stream_file h2_send_file(struct http_request *base, int file, size_t max, size_t *ret_n,
				     struct err *err)
{
	(void)base, (void)file, (void)max, (void)ret_n, (void)err;
	return STREAM_FILE_UNFIT; /* it leaves in frames */
}

static size_t h2_queued(struct http_request *base)
{
	struct h2_request *rq = of(base);

	if (h2_response_len(rq) > STREAM_LOW_WATER)
		h2_flush(rq->conn);
	return h2_response_len(rq);
}

void h2_response_finish(struct h2_request *rq)
{
	rq->finished = true;
	h2_session_resume(rq);
}

static void h2_finish(struct http_request *base)
{
	struct h2_request *rq = of(base);

	if (rq->promise.kind == HTTP1_BODY_LENGTH && rq->promise.left > 0 && !rq->promise.silent)
		h2_session_reset(rq, NGHTTP2_INTERNAL_ERROR);
	h2_response_finish(rq);
	h2_request_detach(rq);
}

static void h2_abort(struct http_request *base)
{
	struct h2_request *rq = of(base);

	h2_session_reset(rq, NGHTTP2_INTERNAL_ERROR);
	h2_request_detach(rq);
}

static void h2_secret(struct http_request *base)
{
	struct h2_request *rq = of(base);
	struct h2_conn *c = rq->conn;

	c->secret = c->in.secret = rq->in.secret = true;
	loop_forget(c->conn.server->loop);
}

static void start_body(struct http_request *base, uint64_t max)
{
	struct h2_request *rq = of(base);

	rq->started = true;
	rq->body_max = max;
	h2_request_due(rq);
}

static void pause_body(struct http_request *base, bool on)
{
	struct h2_request *rq = of(base);

	rq->paused = on;
	if (!on)
		h2_request_due(rq);
	h2_request_watch_input(rq, true);
}

const struct http_request_ops h2_request_ops = {
	.secret = h2_secret,
	.body_start = start_body,
	.body_pause = pause_body,
	.respond = h2_respond,
	.send = h2_send,
	.send_buf = h2_send_buf,
	.send_file = h2_send_file,
	.queued = h2_queued,
	.finish = h2_finish,
	.abort = h2_abort,
	.upgrade = h2_tunnel_open,
};
