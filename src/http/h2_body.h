/* h2_body.h - the body of an HTTP/2 request, on its way to the handler.
 *
 * What the handler does not want yet is kept, as much as a window; what it took is given back to
 * the window of the stream, and what is kept is paid for by the connection as h2_conn.h says.
 */
#pragma once

#include "http/h2_conn.h"

/* For h2_conn.c: handlers are told. The connection may be closed afterwards, and rq gone. */
void h2_body_piece(struct h2_request *rq, struct bytes piece);
void h2_body_ended(struct h2_request *rq);

/* For h2_request.c and h2_tunnel.c. */
void h2_body_tell(struct h2_request *rq); /* what may be told of what is kept */
void h2_body_drop(struct h2_request *rq); /* what is kept */
size_t h2_body_len(const struct h2_request *rq);
/* The next piece of what is kept; the caller frees it. */
struct buf h2_body_take_in(struct h2_request *rq);
/* `n` bytes that were kept no longer are: to the window that all streams share. */
void h2_body_give_back(struct h2_request *rq, size_t n);
