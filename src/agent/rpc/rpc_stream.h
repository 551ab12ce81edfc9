/* rpc_stream.h - a Connect call with one request message and a stream of answers.
 *
 *	rpc_stream_take() -> on_message -> rpc_stream_send() ... -> rpc_stream_end() or _fail()
 *
 * It ends exactly once: by rpc_stream_end(), rpc_stream_fail() or on_gone. Then it no longer
 * exists and its owner may be freed. No call calls back. While nothing else is sent a keepalive
 * message is, so that no proxy on the way takes silence for death.
 */
#pragma once

#include "http/request.h"
#include "net/timer.h"
#include "wire/connect.h"

enum {
	RPC_REQUEST_MAX = 4 * 1024 * 1024, /* of the one message, in bytes */
	RPC_KEEPALIVE_MS = 15 * 1000,      /* at most, whatever the client asks for */
	RPC_QUEUE_ENOUGH = 64 * 1024,      /* more than this to be sent: do not produce more */
	RPC_TAIL = 2,                      /* behind the envelopes of one piece of the body */
};

struct rpc_stream;
struct rpc_stream_ops {
	void (*on_message)(struct rpc_stream *s, struct bytes json); /* once; borrowed */
	void (*on_drain)(struct rpc_stream *s); /* what was enough has left: go on */
	/* The client left, or what it sent was no message and it was told so. The last call. */
	void (*on_gone)(struct rpc_stream *s);
};

struct rpc_stream { /* embedded by the object that answers one call */
	const struct rpc_stream_ops *ops;
	struct http_handler handler;
	struct http_request *rq;
	struct buf in;
	struct timer beat;
	struct bytes keepalive; /* the message; outlives the stream */
	uint64_t beat_ms;
	bool lost; /* the answer cannot be whole any more */
};

/* Takes the request, or refuses it: false, and answered, when it is no stream of JSON. */
bool rpc_stream_take(struct rpc_stream *s, struct loop *l, struct http_request *rq,
		     const struct rpc_stream_ops *ops, struct bytes keepalive) NODISCARD;

void rpc_stream_send(struct rpc_stream *s, struct bytes json);
/* The same without copies: whole envelopes, appended to what was prepared for n bytes of them. */
int rpc_stream_prepare(struct buf *out, size_t n, struct err *err) NODISCARD;
void rpc_stream_send_buf(struct rpc_stream *s, struct buf *envelopes); /* takes its memory */
void rpc_stream_lose(struct rpc_stream *s, const struct err *why); /* it cannot be whole: reset */
bool rpc_stream_full(struct rpc_stream *s);                        /* wait for on_drain */
void rpc_stream_end(struct rpc_stream *s, struct bytes json);      /* with its last message */
void rpc_stream_fail(struct rpc_stream *s, enum connect_code code, const char *message);

/* The Connect-Timeout-Ms of the request; 0: none. */
int rpc_timeout(const struct http_request *rq, uint64_t *ret_ms, struct err *err) NODISCARD;
