/* h1_response.c - see h1_response.h. */
#include "http/h1_response.h"

#include <assert.h>

#include "base/clock.h"
#include "http/date.h"
#include "http/h1_conn.h"
#include "wire/http1_encode.h"

enum { HEAD_OUT_MAX = 64 * 1024 };

static struct h1_request *of(struct http_request *rq)
{
	return CONTAINER_OF(rq, struct h1_request, base);
}

static int put_date(struct buf *out, const struct http_response *r, struct err *err)
{
	char text[HTTP_DATE_MAX];

	for (size_t i = 0; i < r->n_fields; i++)
		if (bytes_eq_nocase(r->fields[i].name, BYTES_LIT("date")))
			return 0; /* relayed, with the date of its origin */
	http_date_put((int64_t)(clock_wall_ns() / NSEC_PER_SEC), text);
	return http1_put_field(out, BYTES_LIT("date"), bytes_str(text), err);
}

static int put_fields(struct buf *out, const struct http_response *r, struct err *err)
{
	if (put_date(out, r, err) < 0)
		return -1;
	for (size_t i = 0; i < r->n_fields; i++)
		if (http1_put_field(out, r->fields[i].name, r->fields[i].value, err) < 0)
			return -1;
	return 0;
}

struct head_out {
	const struct http_response *r;
	const struct body_out *body;
	bool keep, hsts;
};

static int put_head(struct buf *out, const struct head_out *h, struct err *err)
{
	if (http1_put_status_line(out, h->r->status, err) < 0 || put_fields(out, h->r, err) < 0 ||
	    http1_put_body(out, h->body->kind, h->body->left, err) < 0)
		return -1;
	if (h->hsts && http1_put_field(out, BYTES_LIT("strict-transport-security"),
				       BYTES_LIT(HTTP_HSTS), err) < 0)
		return -1;
	if (!h->keep && http1_put_field(out, BYTES_LIT("connection"), BYTES_LIT("close"), err) < 0)
		return -1;
	return http1_put_end(out, err);
}

/* A client that was never told to continue may send its body or not: nobody knows what its next
 * byte means, so that connection ends. So does one with too much body to throw away, and one of a
 * server that drains. */
static bool plan_keep(const struct h1_request *rq)
{
	const struct http_server *sv = rq->conn->conn.server;
	bool too_much = rq->body.kind == HTTP1_BODY_LENGTH && rq->body.left > sv->limits.drain_max;

	return !sv->draining && rq->base.head.minor >= 1 && http1_keep_alive(&rq->base.head) &&
	       !rq->continue_due && (rq->started || !too_much);
}

static int h1_respond(struct http_request *base, const struct http_response *r, struct bytes first,
		      struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_MAX(STREAM_QUEUE_MAX);
	struct h1_request *rq = of(base);
	struct body_out body = body_out_answer(&rq->base.head, r->status, r->length);
	bool keep = plan_keep(rq);
	const struct head_out head = { r, &body, keep, http_conn_says_hsts(base->conn, r) };

	if (put_head(&out, &head, err) < 0)
		return -1;
	if (out.len > HEAD_OUT_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "head over %d bytes", HEAD_OUT_MAX);
	if (!body.silent && buf_add(&out, first, err) < 0)
		return -1;
	if (http_out_write_buf(&rq->conn->out, &out, err) < 0)
		return -1;
	if (body.kind == HTTP1_BODY_LENGTH)
		body.left -= first.len;
	rq->out = body;
	rq->keep = keep;
	h1_watch_output(rq->conn);
	return 0;
}

static int h1_send(struct http_request *base, struct bytes piece, struct err *err)
{
	struct h1_request *rq = of(base);

	if (body_out_send(&rq->out, &rq->conn->out, piece, err) < 0)
		return -1;
	h1_watch_output(rq->conn);
	return 0;
}

static int h1_send_buf(struct http_request *base, struct buf *piece, struct err *err)
{
	struct h1_request *rq = of(base);

	static_assert((int)HTTP_FRONT == (int)BODY_FRONT, "two names for one size");
	if (body_out_send_buf(&rq->out, &rq->conn->out, piece, err) < 0)
		return -1;
	h1_watch_output(rq->conn);
	return 0;
}

static enum stream_file h1_send_file(struct http_request *base, int file, size_t max, size_t *ret_n,
				     struct err *err)
{
	struct h1_request *rq = of(base);
	enum stream_file rc;

	if (rq->out.kind != HTTP1_BODY_LENGTH || rq->out.silent || rq->out.left == 0)
		return STREAM_FILE_UNFIT;
	if (max > rq->out.left)
		max = (size_t)rq->out.left;
	http_out_flush(&rq->conn->out);
	rc = stream_send_file(rq->conn->s, file, max, ret_n, err);
	if (rc == STREAM_FILE_SENT)
		rq->out.left -= *ret_n;
	h1_watch_output(rq->conn);
	return rc;
}

static size_t h1_queued(struct http_request *base)
{
	return http_out_queued(&of(base)->conn->out);
}

/* The answer is complete. */
static void move_on(struct h1_conn *c, bool keep)
{
	struct h1_request *rq = c->rq;

	c->unread = rq->body;
	c->unread.seen = 0; /* from here on, what is thrown away */
	c->state = rq->body.over ? H1_HEAD : H1_DRAIN;
	c->rq = NULL;
	h1_request_free(rq);
	if (!keep) {
		h1_close(c, true);
		return;
	}
	h1_watch_output(c); /* the request may have rested, the connection may not */
	h1_kick(c);
}

static void h1_finish(struct http_request *base)
{
	struct h1_request *rq = of(base);
	struct h1_conn *c = rq->conn;
	struct err err;

	if (body_out_finish(&rq->out, &c->out, &err) < 0) {
		h1_close(c, false);
		return;
	}
	if (!c->feeding || c->view.len == 0) /* else the next answers may leave with it */
		http_out_flush(&c->out);
	h1_watch_output(c);
	move_on(c, rq->keep && rq->out.kind != HTTP1_BODY_CLOSE);
}

static void h1_abort(struct http_request *base)
{
	h1_close(of(base)->conn, false);
}

static void h1_secret(struct http_request *base)
{
	struct h1_conn *c = of(base)->conn;

	c->secret = c->in.secret = true;
	loop_forget(c->conn.server->loop);
}

static void h1_body_start(struct http_request *base, uint64_t max)
{
	struct h1_request *rq = of(base);

	rq->started = true;
	rq->body_max = max;
	h1_kick(rq->conn);
}

static void h1_body_pause(struct http_request *base, bool on)
{
	struct h1_request *rq = of(base);

	rq->paused = on;
	if (on && !rq->conn->feeding)
		h1_update_reading(rq->conn);
	else
		h1_kick(rq->conn);
}

static int put_switch(struct buf *out, const struct h1_request *rq, const struct http_response *r,
		      struct err *err)
{
	struct bytes protocol = http1_upgrade(&rq->base.head);
	bool named = false;

	for (size_t i = 0; i < r->n_fields; i++)
		named = named || bytes_eq_nocase(r->fields[i].name, BYTES_LIT("upgrade"));
	if (http1_put_status_line(out, 101, err) < 0 || put_fields(out, r, err) < 0 ||
	    http1_put_field(out, BYTES_LIT("connection"), BYTES_LIT("upgrade"), err) < 0)
		return -1;
	if (!named && http1_put_field(out, BYTES_LIT("upgrade"), protocol, err) < 0)
		return -1;
	return http1_put_end(out, err);
}

static int h1_upgrade(struct http_request *base, const struct http_response *r, struct stream **ret,
		      struct buf *ret_early, struct err *err)
{
	struct h1_request *rq = of(base);
	struct h1_conn *c = rq->conn;
	AUTO(buf_done) struct buf out = BUF_MAX(HEAD_OUT_MAX);
	AUTO(buf_done) struct buf early = BUF_MAX(HTTP_INPUT_MAX);

	if (http1_upgrade(&base->head).len == 0 || !rq->body.over || c->ended)
		return err_set(err, ERR_INVALID, 0, "the request does not ask for it");
	http_out_flush(&c->out);
	if (put_switch(&out, rq, r, err) < 0 ||
	    buf_add(&early, c->feeding ? c->view : buf_view(&c->in), err) < 0 ||
	    stream_write_buf(c->s, &out, err) < 0)
		return -1;
	*ret = c->s;
	*ret_early = early;
	early = (struct buf){ 0 };
	stream_set_user(c->s, NULL);
	h1_leave_stream(c);
	return 0;
}

const struct http_request_ops h1_request_ops = {
	.secret = h1_secret,
	.body_start = h1_body_start,
	.body_pause = h1_body_pause,
	.respond = h1_respond,
	.send = h1_send,
	.send_buf = h1_send_buf,
	.send_file = h1_send_file,
	.queued = h1_queued,
	.finish = h1_finish,
	.abort = h1_abort,
	.upgrade = h1_upgrade,
};
