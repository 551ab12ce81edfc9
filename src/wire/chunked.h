/* chunked.h - the chunked transfer coding, both ways.
 *
 * The decoder is incremental and copies nothing: it yields the payload as spans of its input.
 * Chunk extensions are refused: nobody sends them, and parsers that skip them disagree on where
 * they end, which is how requests are smuggled. Trailers are checked, bounded and dropped.
 */
#pragma once

#include "base/bytes.h"
#include "wire/decode.h"

enum {
	CHUNKED_DIGITS_MAX = 16,        /* of a chunk size: 64 bits */
	CHUNKED_TRAILER_MAX = 8 * 1024, /* all trailer lines together, in bytes */
	CHUNKED_HEAD_MAX = CHUNKED_DIGITS_MAX + 2,
	CHUNKED_FRONT = 8 + 2,
};

enum chunked_state {
	CHUNKED_SIZE,
	CHUNKED_SIZE_LF,
	CHUNKED_DATA,
	CHUNKED_DATA_CR,
	CHUNKED_DATA_LF,
	CHUNKED_LINE, /* at the start of a trailer line, or of the last, empty one */
	CHUNKED_NAME,
	CHUNKED_VALUE,
	CHUNKED_VALUE_LF,
	CHUNKED_END_LF,
	CHUNKED_DONE,
};

struct chunked { /* all zero is a decoder at the start of a body */
	enum chunked_state state;
	unsigned int digits; /* of the size being read */
	uint64_t left;       /* of the chunk, in bytes */
	size_t trailer;      /* bytes of it so far */
};

/* Take coding off the front of *in, up to and including the next span of payload.
 * OK: *ret is a span that borrows from *in; an empty one says that the body is over and *in begins
 *     with what follows it (asking again gives the same answer).
 * MORE: *in is used up.  BAD: *err says why; asking again gives the same answer. */
enum decode chunked_next(struct chunked *c, struct bytes *in, struct bytes *ret,
			 struct err *err) NODISCARD;

/* A chunk is head, `n` bytes, tail; `n` is not 0, which would end the body. */
int chunked_put_head(struct buf *out, size_t n, struct err *err) NODISCARD;
/* The same in a fixed number of bytes, before a piece that is in memory already. */
void chunked_fill_front(uint8_t front[static CHUNKED_FRONT], size_t n);
int chunked_put_tail(struct buf *out, struct err *err) NODISCARD;
int chunked_put_last(struct buf *out, struct err *err) NODISCARD; /* and no trailer */
