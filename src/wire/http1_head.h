/* http1_head.h - a strict HTTP/1.1 request or response head.
 *
 * Two phases, so each stays simple: http1_head_end() only finds where the head stops;
 * http1_parse_*() sees it whole. Strict means: CRLF only, one space between parts, no folding,
 * no control bytes, no blank before a colon, and exactly one way to know where the body ends.
 * What we refuse, we cannot misread.
 */
#pragma once

#include "base/bytes.h"
#include "wire/decode.h"

enum {
	HTTP1_HEAD_MAX = 32 * 1024, /* start line, fields and the empty line, in bytes */
	HTTP1_FIELDS_MAX = 100,
	HTTP1_METHOD_MAX = 32,
	HTTP1_TARGET_MAX = 8 * 1024,
	HTTP1_NAME_MAX = 256, /* of a field */
	HTTP1_REASON_MAX = 512,
	HTTP1_LIST_MAX = 32, /* elements of a list that we read, over all its lines */
};

enum http1_form {                  /* of a request target; RFC 9112 section 3.2 */
		  HTTP1_ORIGIN,    /* /path?query */
		  HTTP1_ABSOLUTE,  /* http://host/path?query; its host is that of the Host field */
		  HTTP1_AUTHORITY, /* host:port, of CONNECT and nothing else */
		  HTTP1_ASTERISK,  /* *, of OPTIONS and nothing else */
};

enum http1_body { /* how one knows where the body ends */
		  HTTP1_BODY_NONE,
		  HTTP1_BODY_LENGTH,
		  HTTP1_BODY_CHUNKED,
		  HTTP1_BODY_CLOSE, /* responses only: when the sender closes */
};

struct http1_field {
	struct bytes name, value; /* value: blanks at both ends are gone; may be empty */
};

struct http1_head {                  /* every struct bytes borrows from the parsed input */
	struct bytes method, target; /* of a request */
	enum http1_form form;        /* of a request */
	unsigned int status;         /* of a response: 100 to 599; 0 in a request */
	struct bytes reason;         /* of a response; may be empty */
	unsigned int minor;          /* HTTP/1.minor: 0 or 1 */
	enum http1_body body;
	uint64_t length; /* when body is HTTP1_BODY_LENGTH */
	size_t n_fields;
	struct http1_field fields[HTTP1_FIELDS_MAX];
};

/* Find the end of a head at the front of `in`. *scanned is the caller's: 0 for a new head, then
 * left alone between calls with ever longer prefixes, so that no byte is searched twice.
 * OK: the head is the first *ret_used bytes. BAD: too long, or a line that does not end in CRLF. */
enum decode http1_head_end(struct bytes in, size_t *scanned, size_t *ret_used,
			   struct err *err) NODISCARD;

/* `in` is exactly one head, as http1_head_end() cut it. *ret is undefined on failure. */
int http1_parse_request(struct bytes in, struct http1_head *ret, struct err *err) NODISCARD;

/* `method` is that of the request answered: HEAD and CONNECT change what follows the head. */
int http1_parse_response(struct bytes in, struct bytes method, struct http1_head *ret,
			 struct err *err) NODISCARD;

bool http1_has_body(const struct http1_head *h); /* of a request: and it is not empty */

/* --- for h2_head.c, which makes the same head of other bytes ---------------------------------- */

void http1_head_reset(struct http1_head *h);
int http1_check_lists(const struct http1_head *h, struct err *err) NODISCARD;
