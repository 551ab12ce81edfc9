/* h2_response.h - the answer to a request of HTTP/2: its head, and what waits to be sent. */
#pragma once

#include "http/h2_conn.h"

extern const struct http_request_ops h2_request_ops;

/* The status and fields, as they are sent; `with_body`: DATA follows. */
int h2_response_head(struct h2_request *rq, const struct http_response *r, bool with_body,
		     struct err *err) NODISCARD;
int h2_response_queue(struct h2_request *rq, struct bytes piece, struct err *err) NODISCARD;
void h2_response_finish(struct h2_request *rq); /* nothing more follows */

size_t h2_response_len(const struct h2_request *rq);     /* that waits */
void h2_response_taken(struct h2_request *rq, size_t n); /* of it, by nghttp2 */
void h2_response_forget(struct h2_request *rq);          /* all of it */
