/* connect.h - the Connect protocol: the frame around each message of a stream, and its errors.
 *
 *	+-------+----------------+---------------------+
 *	| flags | length, big-   | `length` bytes      |
 *	| u8    | endian u32     |                     |
 *	+-------+----------------+---------------------+
 */
#pragma once

#include "base/bytes.h"
#include "wire/decode.h"

enum { ENVELOPE_HEAD = 5 };
enum { ENVELOPE_COMPRESSED = 1u << 0, ENVELOPE_END = 1u << 1 };

struct envelope {
	bool end;          /* the last of its stream: body is {} or an error */
	struct bytes body; /* borrows from the input */
};

/* Decode one envelope from the front of `in`. A length above `max` is refused from the head alone,
 * before the body is buffered. Compression is refused: nobody negotiated it. */
enum decode envelope_decode(struct bytes in, size_t max, struct envelope *ret, size_t *ret_used,
			    struct err *err) NODISCARD;
int envelope_put(struct buf *out, const struct envelope *e, struct err *err) NODISCARD;

/* The same around what is appended between the two, for messages that should not be copied. */
int envelope_open(struct buf *out, size_t *ret_at, struct err *err) NODISCARD;
void envelope_close(struct buf *out, size_t at);

/* Where the bytes of a stream that passes by are: between two envelopes, or within one. All zero:
 * at its beginning. */
struct envelope_place {
	uint8_t head[ENVELOPE_HEAD];
	size_t in_head; /* of these have come */
	uint32_t left;  /* of the body */
	bool ended;     /* the last envelope has begun */
};
void envelope_follow(struct envelope_place *p, struct bytes in);
bool envelope_between(const struct envelope_place *p); /* and another one may follow */

enum connect_code { /* the values of gRPC, which the Connect protocol shares */
		    CONNECT_CANCELED = 1,
		    CONNECT_UNKNOWN,
		    CONNECT_INVALID_ARGUMENT,
		    CONNECT_DEADLINE_EXCEEDED,
		    CONNECT_NOT_FOUND,
		    CONNECT_ALREADY_EXISTS,
		    CONNECT_PERMISSION_DENIED,
		    CONNECT_RESOURCE_EXHAUSTED,
		    CONNECT_FAILED_PRECONDITION,
		    CONNECT_ABORTED,
		    CONNECT_OUT_OF_RANGE,
		    CONNECT_UNIMPLEMENTED,
		    CONNECT_INTERNAL,
		    CONNECT_UNAVAILABLE,
		    CONNECT_DATA_LOSS,
		    CONNECT_UNAUTHENTICATED,
		    CONNECT_CODES,
};

enum { CONNECT_MESSAGE_MAX = 1024 }; /* of an error, in bytes; the rest is cut off */

const char *connect_code_name(enum connect_code code);    /* "not_found" */
unsigned int connect_code_status(enum connect_code code); /* of HTTP, for a unary call: 404 */
enum connect_code connect_code_of(enum err_code code);

/* {"code":"not_found","message":"..."}: the body of a unary call that failed. Bytes that are not
 * UTF-8 come out as '?', so that any text may be reported. */
int connect_put_error(struct buf *out, enum connect_code code, struct bytes message,
		      struct err *err) NODISCARD;

/* The envelope that ends a stream: {} when it went well, {"error":{...}} when not. */
int connect_put_end(struct buf *out, struct err *err) NODISCARD;
int connect_put_end_error(struct buf *out, enum connect_code code, struct bytes message,
			  struct err *err) NODISCARD;
