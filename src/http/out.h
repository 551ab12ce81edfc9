/* out.h - the way out of a connection: what is written to it in one turn of the loop leaves in one
 * write.
 *
 * Who sends a thousand pieces of one byte makes a thousand times the work of one who sends one
 * piece, if each of them is a system call. A piece that is large enough leaves at once, without a
 * copy.
 */
#pragma once

#include "net/stream.h"
#include "net/turn_end.h"

enum {
	HTTP_OUT_HELD = STREAM_LOW_WATER, /* bytes that wait for the end of the turn, at most */
	HTTP_OUT_ALONE = 8 * 1024,        /* a piece of so many is worth a write of its own */
};

struct http_out;
typedef void http_out_slow_fn(struct http_out *o);
struct http_out {
	struct stream *s; /* the owner's; NULL: not open */
	struct buf held;
	struct turn_end end;
	bool broken; /* what was held could not be written */
	/* What was held has left, and the other side did not take all of it. */
	http_out_slow_fn *on_slow;
};

void http_out_open(struct http_out *o, struct stream *s, http_out_slow_fn *on_slow);

/* As stream_write() and stream_write_buf(). What fails later breaks the stream. */
int http_out_write(struct http_out *o, struct bytes b, struct err *err) NODISCARD;
int http_out_write_buf(struct http_out *o, struct buf *b, struct err *err) NODISCARD;

/* As of a stream; above STREAM_LOW_WATER on_drain of the stream will come. */
size_t http_out_queued(struct http_out *o);
size_t http_out_room(struct http_out *o);

void http_out_flush(struct http_out *o); /* now: before the stream is used in another way */
void http_out_done(struct http_out *o);  /* what is held is thrown away */
