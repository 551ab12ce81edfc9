/* rpc_stream.c - envelopes over HTTP. */
#include "agent/rpc/rpc_stream.h"

#include "agent/reply.h"
#include "base/log.h"

enum { TIMEOUT_DIGITS_MAX = 10, ERROR_ENVELOPE_MAX = 16 * 1024 };

static struct rpc_stream *of(struct http_handler *h)
{
	return CONTAINER_OF(h, struct rpc_stream, handler);
}

/* What was allocated for the call; the request is gone or going. */
static void release(struct rpc_stream *s)
{
	timer_stop(&s->beat);
	buf_done(&s->in);
	s->rq = NULL;
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct rpc_stream *s = of(h);
	struct err err;

	if (!s->lost && buf_add(&s->in, piece, &err) < 0)
		s->lost = true; /* no memory: said when the body is over */
}

/* Exactly one message, and nothing after it. */
static int one_message(struct rpc_stream *s, struct bytes *ret, struct err *err)
{
	struct envelope e;
	size_t used;

	if (s->lost)
		return err_set(err, ERR_EXHAUSTED, 0, "no memory for the request");
	switch (envelope_decode(buf_view(&s->in), RPC_REQUEST_MAX, &e, &used, err)) {
	case DECODE_MORE:
		return err_set(err, ERR_INVALID, 0, "the request is not a whole message");
	case DECODE_BAD:
		return -1;
	case DECODE_OK:
		break;
	}
	if (e.end || used != s->in.len)
		return err_set(err, ERR_INVALID, 0, "the request is not one message");
	*ret = e.body;
	return 0;
}

static void on_body_end(struct http_handler *h)
{
	struct rpc_stream *s = of(h);
	struct bytes message = { 0 };
	struct err err;

	if (one_message(s, &message, &err) == 0) {
		s->ops->on_message(s, message);
		return;
	}
	s->lost = false;
	rpc_stream_fail(s, connect_code_of(err.code), err.msg);
	s->ops->on_gone(s);
}

static void on_drain(struct http_handler *h)
{
	struct rpc_stream *s = of(h);

	s->ops->on_drain(s);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	struct rpc_stream *s = of(h);

	log_debug("stream: %s", err->msg);
	release(s);
	s->ops->on_gone(s);
}

static const struct http_handler_ops handler_ops = { on_body, on_body_end, on_drain, on_gone };

static void on_beat(struct timer *t)
{
	struct rpc_stream *s = CONTAINER_OF(t, struct rpc_stream, beat);

	if (s->lost) {
		http_abort(s->rq);
		release(s);
		s->ops->on_gone(s);
		return;
	}
	/* what waits to be sent is sign of life enough */
	if (http_queued(s->rq) == 0)
		rpc_stream_send(s, s->keepalive);
	else
		timer_start(&s->beat, s->beat_ms);
}

static uint64_t beat_of(const struct http_request *rq)
{
	struct bytes value;
	uint64_t seconds;

	if (http1_find(http_request_head(rq), "keepalive-ping-interval", &value) != 1 ||
	    !bytes_to_u64(value, &seconds) || seconds == 0 || seconds > RPC_KEEPALIVE_MS / 1000)
		return RPC_KEEPALIVE_MS;
	return seconds * 1000;
}

bool rpc_stream_take(struct rpc_stream *s, struct loop *l, struct http_request *rq,
		     const struct rpc_stream_ops *ops, struct bytes keepalive)
{
	if (!request_is(rq, "application/connect+json")) {
		reply_fail(rq, 415, "content-type must be application/connect+json");
		return false;
	}
	*s = (struct rpc_stream){
		.ops = ops,
		.handler = { &handler_ops },
		.rq = rq,
		.in = BUF_MAX(RPC_REQUEST_MAX + ENVELOPE_HEAD),
		.keepalive = keepalive,
		.beat_ms = beat_of(rq),
	};
	timer_init(&s->beat, l, on_beat);
	http_request_take(rq, &s->handler);
	http_body_start(rq, s->in.max);
	return true;
}

/* The loop will part from the client. */
void rpc_stream_lose(struct rpc_stream *s, const struct err *why)
{
	log_debug("stream: %s", why->msg);
	s->lost = true;
	timer_start(&s->beat, 0);
}

/* The head goes with the first message. */
static int begin(struct http_request *rq, struct err *err)
{
	static const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/connect+json") },
		{ BYTES_LIT("x-accel-buffering"), BYTES_LIT("no") }, /* for nginx on the way */
	};
	const struct http_response r = { 200, fields, COUNT(fields), HTTP_CHUNKED };

	return http_responded(rq) ? 0 : http_respond(rq, &r, err);
}

void rpc_stream_send(struct rpc_stream *s, struct bytes json)
{
	AUTO(buf_done) struct buf out = BUF_MAX(json.len + ENVELOPE_HEAD);
	const struct envelope e = { .body = json };
	struct err err;

	if (s->lost)
		return;
	if (begin(s->rq, &err) < 0 || envelope_put(&out, &e, &err) < 0 ||
	    http_send(s->rq, buf_view(&out), &err) < 0)
		rpc_stream_lose(s, &err);
	else
		timer_start(&s->beat, s->beat_ms);
}

int rpc_stream_prepare(struct buf *out, size_t n, struct err *err)
{
	uint8_t *room;

	if (buf_reserve(out, HTTP_FRONT + n + RPC_TAIL, &room, err) < 0)
		return -1;
	memset(room, 0, HTTP_FRONT);
	buf_claim(out, HTTP_FRONT);
	return 0;
}

void rpc_stream_send_buf(struct rpc_stream *s, struct buf *envelopes)
{
	struct err err;

	if (s->lost)
		return;
	if (begin(s->rq, &err) < 0 || http_send_buf(s->rq, envelopes, &err) < 0)
		rpc_stream_lose(s, &err);
	else
		timer_start(&s->beat, s->beat_ms);
}

bool rpc_stream_full(struct rpc_stream *s)
{
	return http_queued(s->rq) > RPC_QUEUE_ENOUGH;
}

/* The last envelope, and with it the request. */
static void finish(struct rpc_stream *s, struct bytes last)
{
	struct http_request *rq = s->rq;
	struct err err;
	bool lost = s->lost;

	release(s);
	if (lost || begin(rq, &err) < 0 || http_send(rq, last, &err) < 0)
		http_abort(rq);
	else
		http_finish(rq);
}

void rpc_stream_end(struct rpc_stream *s, struct bytes json)
{
	AUTO(buf_done) struct buf last = BUF_MAX(json.len + ERROR_ENVELOPE_MAX);
	const struct envelope e = { .body = json };
	struct err err;

	if (envelope_put(&last, &e, &err) < 0 || connect_put_end(&last, &err) < 0)
		s->lost = true;
	finish(s, buf_view(&last));
}

void rpc_stream_fail(struct rpc_stream *s, enum connect_code code, const char *message)
{
	AUTO(buf_done) struct buf last = BUF_MAX(ERROR_ENVELOPE_MAX);
	struct err err;

	if (connect_put_end_error(&last, code, bytes_str(message), &err) < 0)
		s->lost = true;
	finish(s, buf_view(&last));
}

int rpc_timeout(const struct http_request *rq, uint64_t *ret_ms, struct err *err)
{
	struct bytes value;
	size_t n = http1_find(http_request_head(rq), "connect-timeout-ms", &value);

	*ret_ms = 0;
	if (n == 0)
		return 0;
	if (n > 1 || value.len > TIMEOUT_DIGITS_MAX || !bytes_to_u64(value, ret_ms))
		return err_set(err, ERR_INVALID, 0, "invalid connect-timeout-ms");
	return 0;
}
