/* body.h - where a body ends, on the way in and on the way out; shared by server and client. */
#pragma once

#include "http/limits.h"
#include "http/out.h"
#include "wire/chunked.h"
#include "wire/http1_head.h"

struct body_in {
	enum http1_body kind;
	uint64_t left; /* HTTP1_BODY_LENGTH */
	uint64_t seen; /* payload so far */
	struct chunked chunked;
	bool over;
};

void body_in_init(struct body_in *b, const struct http1_head *h);

/* Cut the next span of payload off *in. OK with an empty span: the body is over and *in begins
 * with what follows. MORE: *in is used up. A body that ends with the connection never ends here. */
enum decode body_in_next(struct body_in *b, struct bytes *in, struct bytes *ret,
			 struct err *err) NODISCARD;

/* The same, but small chunks are put together in *room (empty, and done by the caller), so that who
 * is told of a piece is told once for many. Each chunk is one less in *left, and at 0 no other
 * is looked at. */
enum decode body_in_gather(struct body_in *b, struct bytes *in, struct buf *room, size_t *left,
			   struct bytes *ret, struct err *err) NODISCARD;

/* What is left of a connection's turn: see limits.h. */
struct http_turn {
	size_t bytes, chunks, requests;
};
#define HTTP_TURN ((struct http_turn){ HTTP_TURN_BYTES, HTTP_TURN_CHUNKS, HTTP_TURN_REQUESTS })

/* Of `before` bytes `after` are left. True: its turn is over, and there is more. */
static inline bool http_turn_used(struct http_turn *t, size_t before, size_t after)
{
	size_t n = before - after;

	t->bytes -= n < t->bytes ? n : t->bytes;
	return after > 0 && (t->bytes == 0 || t->chunks == 0 || t->requests == 0);
}

struct body_out {
	enum http1_body kind;
	uint64_t left; /* HTTP1_BODY_LENGTH */
	bool silent;   /* counted, not sent: the answer to HEAD */
};

/* Of an answer with this status and length, or HTTP_CHUNKED, to a request. */
struct body_out body_out_answer(const struct http1_head *asked, unsigned int status,
				int64_t length);

/* One write for the whole piece. ERR_INVALID: more than was promised. */
int body_out_send(struct body_out *b, struct http_out *to, struct bytes piece,
		  struct err *err) NODISCARD;

/* The same without a copy where that can be, from behind BODY_FRONT bytes of `piece`; takes it. */
enum { BODY_FRONT = CHUNKED_FRONT };
int body_out_send_buf(struct body_out *b, struct http_out *to, struct buf *piece,
		      struct err *err) NODISCARD;

/* ERR_INVALID: less than was promised. */
int body_out_finish(struct body_out *b, struct http_out *to, struct err *err) NODISCARD;
