/* http1_encode.h - writing heads. What is written here, http1_head.h reads back the same.
 *
 * Names, values, methods and targets are checked byte by byte: text from a client or a guest
 * cannot end a line, and so cannot add a field. A refused call leaves `out` as it was.
 */
#pragma once

#include "wire/http1_head.h"

/* A whole head, step by step: a line, fields, the end. HTTP/1.1 always. */
int http1_put_request_line(struct buf *out, struct bytes method, struct bytes target,
			   struct err *err) NODISCARD;
int http1_put_status_line(struct buf *out, unsigned int status, struct err *err) NODISCARD;
int http1_put_field(struct buf *out, struct bytes name, struct bytes value,
		    struct err *err) NODISCARD;
int http1_put_end(struct buf *out, struct err *err) NODISCARD;

/* The field that says where the body ends: Content-Length, Transfer-Encoding, or none.
 * (A request or response without a body that must still say so: HTTP1_BODY_LENGTH and 0.) */
int http1_put_body(struct buf *out, enum http1_body body, uint64_t length,
		   struct err *err) NODISCARD;

/* "Not Found"; "Unknown" for a status without a name. */
const char *http1_reason(unsigned int status);
