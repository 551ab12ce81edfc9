/* client.h - ask an HTTP server over a stream, one request after the other.
 *
 *	http_client_open() -> http_ask() -> [http_ask_send() ... http_ask_finish()]
 *	                         on_head ... on_body ... on_end      -> http_ask() again
 *
 * The server is not trusted: heads, times and lengths are bounded, and an answer shorter than it
 * promised is a failure, never an end. An exchange ends exactly once: by on_end or on_fail from
 * the client, by http_ask_cancel() or http_ask_take() from the caller. Then it no longer exists,
 * and its owner may be freed at once, from inside any callback too. No call calls back.
 */
#pragma once

#include "http/limits.h"
#include "net/stream.h"
#include "wire/http1_field.h"

struct http_client;   /* one connection */
struct http_exchange; /* one request and its answer */

struct http_reply;
struct http_reply_ops {
	/* The head of the answer, borrowed until on_end or on_fail returns. A 101 is taken over
	 * here, with http_ask_take(), or fails. Other 1xx are not reported. */
	void (*on_head)(struct http_reply *r, const struct http1_head *head);
	/* Borrowed for the call. This one, on_end and on_drain may be NULL. */
	void (*on_body)(struct http_reply *r, struct bytes piece);
	/* The whole answer arrived. The last call. The client may be asked again, or closed. */
	void (*on_end)(struct http_reply *r);
	/* What http_ask_send() queued has left, but for STREAM_LOW_WATER. */
	void (*on_drain)(struct http_reply *r);
	/* The last call. The connection is of no more use. */
	void (*on_fail)(struct http_reply *r, const struct err *err);
};
struct http_reply { /* embedded by the one who asks */
	const struct http_reply_ops *ops;
};

struct http_ask {
	struct bytes method, target, host;
	const struct http1_field *fields; /* not Host, Content-Length, Transfer-Encoding */
	size_t n_fields;
	struct bytes body;    /* all of it, at most HTTP_WHOLE_MAX: it leaves with the head */
	int64_t length;       /* else: of the body to come, 0 for none, or HTTP_CHUNKED */
	struct bytes upgrade; /* ask to switch to this protocol; empty: no */
	uint64_t deadline_ms; /* for the whole exchange; 0: only the limits apply */
	size_t max_answer;    /* bytes, of call.h alone: a longer one is a failure */
};

/* Takes the stream in any case. */
int http_client_open(struct stream *s, const struct http_limits *limits, struct http_client **ret,
		     struct err *err) NODISCARD;
/* The same for a stream of which something was read already; NULL: nothing. It belongs to the first
 * answer, and is taken on success. To be asked before the next turn of the loop. */
int http_client_open_early(struct stream *s, struct buf *early, const struct http_limits *limits,
			   struct http_client **ret, struct err *err) NODISCARD;
bool http_client_ready(const struct http_client *c); /* alive, and no exchange under way */
void http_client_close(struct http_client *c);       /* cancels what is under way; NULL is fine */

/* Send the head. On failure nothing was sent and no callback will come. */
int http_ask(struct http_client *c, const struct http_ask *ask, struct http_reply *r,
	     struct http_exchange **ret, struct err *err) NODISCARD;

/* Pieces of the request's body, when ask.length was not 0; as http_send() of a server. */
int http_ask_send(struct http_exchange *x, struct bytes piece, struct err *err) NODISCARD;
void http_ask_finish(struct http_exchange *x); /* less than promised: on_fail follows */
size_t http_ask_queued(struct http_exchange *x);

void http_ask_pause(struct http_exchange *x, bool on); /* on_body not now */

/* The connection cannot be used for another exchange after this. */
void http_ask_cancel(struct http_exchange *x);

/* After a 101: the stream, and what was read beyond the head. The client is then empty, and only
 * to be closed. On failure (no memory) nothing is taken, and on_fail follows. */
int http_ask_take(struct http_exchange *x, struct stream **ret, struct buf *ret_early,
		  struct err *err) NODISCARD;
