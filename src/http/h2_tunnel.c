/* h2_tunnel.c - see h2_tunnel.h.
 *
 * The client sees an answer with status 200 and then DATA both ways; END_STREAM is a half close.
 * What it may send ahead is its window, so who does not read holds it back.
 *
 * The connection may end before the owner of the stream lets go of it: then rq->conn is NULL, and
 * the timer of the request does what the connection did.
 */
#include "http/h2_tunnel.h"

#include "http/h2_body.h"
#include "http/h2_request.h"
#include "http/h2_response.h"
#include "http/h2_session.h"

static struct h2_request *of(struct stream *s)
{
	return CONTAINER_OF(s, struct h2_request, tunnel);
}

static void soon(struct h2_request *rq)
{
	if (rq->conn)
		h2_request_due(rq);
	else
		timer_start(&rq->input, 0);
}

static void tunnel_read(struct stream *s, bool on)
{
	struct h2_request *rq = of(s);

	if ((on || rq->closed) && s->user)
		soon(rq);
}

static int tunnel_write(struct stream *s, struct bytes b, struct buf *take, struct err *err)
{
	struct h2_request *rq = of(s);

	if (!rq->conn)
		return err_set(err, ERR_UNAVAILABLE, 0, "the connection is gone");
	return h2_response_queue(rq, take ? buf_view(take) : b, err);
}

static void tunnel_shut(struct stream *s)
{
	struct h2_request *rq = of(s);

	if (rq->conn)
		h2_response_finish(rq);
}

static void tunnel_close(struct stream *s, bool graceful)
{
	struct h2_request *rq = of(s);

	if (!rq->conn) {
		rq->detached = true;
		timer_start(&rq->input, 0);
		return;
	}
	if (graceful && !rq->closed)
		h2_response_finish(rq);
	else
		h2_session_reset(rq, NGHTTP2_CANCEL);
	rq->is_tunnel = false; /* from here on a request that was answered */
	h2_request_detach(rq);
}

static size_t tunnel_queued(struct stream *s)
{
	struct h2_request *rq = of(s);

	return rq->out.len - rq->out_at;
}

static uint64_t tunnel_sent(struct stream *s)
{
	return of(s)->taken;
}

static const struct stream_ops tunnel_ops = {
	.read = tunnel_read,
	.write = tunnel_write,
	.shut = tunnel_shut,
	.close = tunnel_close,
	.queued = tunnel_queued,
	.sent = tunnel_sent,
};

void h2_tunnel_tell(struct h2_request *rq)
{
	struct stream *s = &rq->tunnel;
	struct stream_user *u = s->user;
	AUTO(buf_done) struct buf piece = { 0 };

	if (!u || !s->reading)
		return;
	if (h2_body_len(rq) > 0) {
		piece = h2_body_take_in(rq);
		h2_request_due(rq); /* more, or the end, may follow */
		if (piece.len > 0)
			u->ops->on_data(u, buf_view(&piece));
	} else if (rq->ended && !rq->end_told) {
		rq->end_told = true;
		u->ops->on_end(u);
	}
}

void h2_tunnel_drained(struct h2_request *rq)
{
	struct stream_user *u = rq->tunnel.user;

	if (u && u->ops->on_drain)
		u->ops->on_drain(u);
}

void h2_tunnel_fail(struct h2_request *rq)
{
	struct stream_user *u = rq->tunnel.user;
	struct err why = rq->why;

	if (rq->failed || !u) /* who comes next will be told */
		return;
	rq->failed = true;
	u->ops->on_fail(u, &why);
}

void h2_tunnel_later(struct h2_request *rq)
{
	if (rq->detached)
		h2_request_free(rq);
	else
		h2_tunnel_fail(rq);
}

/* What only a handshake of HTTP/1.1 has. */
static bool is_of_handshake(struct bytes name)
{
	return bytes_eq_nocase(name, BYTES_LIT("upgrade")) ||
	       bytes_eq_nocase(name, BYTES_LIT("sec-websocket-accept"));
}

int h2_tunnel_open(struct http_request *base, const struct http_response *r, struct stream **ret,
		   struct buf *ret_early, struct err *err)
{
	struct h2_request *rq = CONTAINER_OF(base, struct h2_request, base);
	struct http1_field fields[HTTP_FIELDS_OUT_MAX];
	struct http_response out = { .status = 200, .fields = fields, .length = HTTP_CHUNKED };

	if (!h2_head_is_tunnel(&rq->head_in))
		return err_set(err, ERR_INVALID, 0, "the request does not ask for it");
	for (size_t i = 0; i < r->n_fields; i++)
		if (!is_of_handshake(r->fields[i].name))
			fields[out.n_fields++] = r->fields[i];
	rq->promise = (struct body_out){ .kind = HTTP1_BODY_CHUNKED };
	if (h2_response_head(rq, &out, true, err) < 0)
		return -1;
	stream_init(&rq->tunnel, &tunnel_ops, rq->conn->conn.server->loop);
	rq->is_tunnel = true;
	rq->base.handler = NULL;
	h2_request_watch_input(rq, false); /* what a body was given does not bind a tunnel */
	h2_request_watch_output(rq);
	*ret = &rq->tunnel;
	*ret_early = (struct buf){ 0 };
	return 0;
}
