/* request.h - one request that a server was sent, and its answer.
 *
 *	on_request --> answer at once:  http_answer(), http_fail()
 *	          \--> or take it:      http_request_take(rq, &me->handler), then in any order
 *	                 body:          http_body_start() ... on_body ... on_body_end
 *	                 answer:        http_respond(), http_send() ..., http_finish()
 *
 * A request ends exactly once: by http_finish(), http_answer(), http_fail(), http_abort() or
 * http_upgrade() from the handler, or by on_gone from the server. Then it no longer exists for
 * the handler: no callback comes, no call may be made, and the handler may be freed at once.
 * A whole answer leaves at once, pieces of one at the end of the turn of the loop, or before. All
 * calls may be made from all callbacks, and none of them calls back.
 */
#pragma once

#include "http/limits.h"
#include "net/address_counts.h"
#include "net/introduction.h"
#include "net/stream.h"
#include "wire/http1_field.h"

struct http_request; /* one exchange: the request and its answer */

struct http_handler;
struct http_handler_ops {
	/* Only after http_body_start(). `piece` is borrowed until the call returns. These and
	 * on_drain may be NULL. */
	void (*on_body)(struct http_handler *h, struct bytes piece);
	void (*on_body_end)(struct http_handler *h);
	/* What http_send() queued has left, but for STREAM_LOW_WATER. */
	void (*on_drain)(struct http_handler *h);
	/* The client vanished, stalled or broke the rules. The last call. */
	void (*on_gone)(struct http_handler *h, const struct err *err);
};
struct http_handler { /* embedded by the object that answers one request */
	const struct http_handler_ops *ops;
};

/* What the server's owner notes of a request, until it is over: http/ reads nothing of it. */
enum { HTTP_NOTE_ID = 24, HTTP_NOTE_WHOSE = 96 };
struct http_note {                   /* all zero: nothing was noted */
	const char *how, *what;      /* literals */
	char id[HTTP_NOTE_ID];       /* of the request */
	char whose[HTTP_NOTE_WHOSE]; /* who is known to ask */
	unsigned int kind;
	uint64_t since_ns;
};
struct http_note *http_request_note(struct http_request *rq);

/* The fields as they came; borrowed until the request ends. */
const struct http1_head *http_request_head(const struct http_request *rq);
/* Who asks: the other end of the connection, unless http_request_came_from() said otherwise. */
const struct addr *http_request_peer(const struct http_request *rq); /* NULL: not known */
bool http_request_secure(const struct http_request *rq);  /* over TLS, as far as is known */
bool http_request_unnamed(const struct http_request *rq); /* for whom is not known */
bool http_request_proxied(const struct http_request *rq); /* through a proxy that is believed */
void http_request_came_from(struct http_request *rq, const struct net_peer *who);
/* It is one of this address, as long as it lasts: then it is dropped. */
void http_request_count(struct http_request *rq, struct address_count *of);
/* It lasts longer than the request, as an upgrade does: the caller drops it. NULL: none. */
struct address_count *http_request_take_count(struct http_request *rq);
/* NULL detaches the handler; the caller attaches another at once, before the body was started. */
void http_request_take(struct http_request *rq, struct http_handler *h);
/* Neither a body that stalls nor an answer that is not taken ends this request. */
void http_request_rests(struct http_request *rq);

void http_request_secret(struct http_request *rq); /* its body is: no memory keeps it afterwards */

/* Begin to read the body: at most `max` bytes, else the answer is 413. This is when a client that
 * asked for it is told to continue. Without a body on_body_end comes all the same. Not started
 * at all, the body is thrown away after the answer. */
void http_body_start(struct http_request *rq, uint64_t max);
void http_body_pause(struct http_request *rq, bool on);

struct http_response {
	unsigned int status;              /* 200 to 599 */
	const struct http1_field *fields; /* not Content-Length, Transfer-Encoding, Connection */
	size_t n_fields;
	int64_t length; /* of the body, or HTTP_CHUNKED; 0 for 204 and 304 */
};

/* The head. An error (a field that cannot be sent) leaves the request unanswered. */
int http_respond(struct http_request *rq, const struct http_response *r, struct err *err) NODISCARD;
bool http_responded(const struct http_request *rq);

/* A piece of the body. Refused (ERR_EXHAUSTED) when more than STREAM_QUEUE_MAX would wait: send
 * when http_queued() is low, else after on_drain. To a HEAD request nothing is sent. */
int http_send(struct http_request *rq, struct bytes piece, struct err *err) NODISCARD;
/* Without a copy: what is behind the first HTTP_FRONT bytes. Takes the memory, also on failure. */
enum { HTTP_FRONT = 10 };
int http_send_buf(struct http_request *rq, struct buf *piece, struct err *err) NODISCARD;
size_t http_queued(struct http_request *rq);

/* The next bytes of a file, as stream_send_file(). Only in a body whose length was promised. */
enum stream_file http_send_file(struct http_request *rq, int file, size_t max, size_t *ret_n,
				struct err *err) NODISCARD;

/* The whole answer is given; less than the length promised is a bug and resets the connection. */
void http_finish(struct http_request *rq);
void http_abort(struct http_request *rq); /* reset: the client sees that the answer is not whole */

/* In one call: r->length is taken from `body`, at most HTTP_WHOLE_MAX bytes. What cannot be sent
 * becomes a 500. http_fail() answers {"code":404,"message":"..."}, or resets the connection when an
 * answer was already begun. */
void http_answer(struct http_request *rq, const struct http_response *r, struct bytes body);
void http_fail(struct http_request *rq, unsigned int status, const char *message);

/* Answer 101 with r's fields, then give up the stream and what was read beyond the head. Only for
 * a request without a body. On failure the request goes on. */
int http_upgrade(struct http_request *rq, const struct http_response *r, struct stream **ret,
		 struct buf *ret_early, struct err *err) NODISCARD;
