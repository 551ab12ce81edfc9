/* h2_head.h - the head of an HTTP/2 request, checked and made into what http1_head.h gives.
 *
 *	h2_head_add() for each field, in the order of arrival; h2_head_end() when they are all there
 *
 * So that whoever answers requests knows one kind of head. All of RFC 9113 section 8 is checked
 * here, whatever a library below has checked already: pseudo-fields first, once and known ones
 * only; names in lower case; nothing that speaks of a connection; one host; a body that is as long
 * as was promised. What is malformed is ERR_INVALID, what is too large ERR_EXHAUSTED, a protocol
 * that CONNECT may not ask for ERR_NOT_FOUND.
 *
 * A WebSocket (RFC 8441: CONNECT with :protocol) becomes the GET with Upgrade that it would be in
 * HTTP/1.1.
 */
#pragma once

#include "wire/http1_head.h"

enum {
	/* Of a head, counted as SETTINGS_MAX_HEADER_LIST_SIZE is: H2_FIELD_COST for each field. */
	H2_LIST_MAX = HTTP1_HEAD_MAX,
	H2_FIELD_COST = 32,
	H2_KEY_LEN = 24, /* of Sec-WebSocket-Key: 16 bytes in base64 */
};

struct h2_head_in {        /* all zero: no field yet */
	struct buf text;   /* what the head will borrow from */
	size_t list;       /* so far, see H2_LIST_MAX */
	size_t cookies;    /* bytes of cookies, and of what joins them */
	unsigned int seen; /* pseudo-fields, by bit */
	bool regular;      /* a field that is none has come */
};

void h2_head_done(struct h2_head_in *in);

int h2_head_add(struct h2_head_in *in, struct bytes name, struct bytes value,
		struct err *err) NODISCARD;

/* `ended`: no body follows. *ret borrows from `in`, which is not added to any more, and from `key`:
 * what the request of a WebSocket has as its key, H2_KEY_LEN bytes that last as long. The body is
 * HTTP1_BODY_CHUNKED when its length is not known. */
int h2_head_end(struct h2_head_in *in, bool ended, struct bytes key, struct http1_head *ret,
		struct err *err) NODISCARD;

/* Is it a CONNECT with :protocol? Of one that was ended. */
bool h2_head_is_tunnel(const struct h2_head_in *in);

/* Whether what came of a body agrees with content-length. */
struct h2_length {
	bool has_length;
	uint64_t left;
};
void h2_length_init(struct h2_length *b, const struct http1_head *h);
bool h2_length_take(struct h2_length *b, size_t n); /* false: it is longer */
bool h2_length_end(const struct h2_length *b);      /* false: it is shorter */

/* A field of an answer: its name in lower case is appended to `room`, which was reserved, for *ret
 * borrows from it. Refused when it is malformed, as http1_put_field() does. */
int h2_lower_name(struct bytes name, struct bytes value, struct buf *room, struct bytes *ret,
		  struct err *err) NODISCARD;
