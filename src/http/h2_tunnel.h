/* h2_tunnel.h - a stream of HTTP/2 after a switch of protocols (RFC 8441), as a struct stream. */
#pragma once

#include "http/h2_conn.h"

/* The `upgrade` of a request's table. */
int h2_tunnel_open(struct http_request *rq, const struct http_response *r, struct stream **ret,
		   struct buf *ret_early, struct err *err) NODISCARD;

/* --- for h2_request.c: in a turn of the loop of their own ------------------------------------ */

void h2_tunnel_tell(struct h2_request *rq); /* what came, or that nothing more will */
void h2_tunnel_drained(struct h2_request *rq);
void h2_tunnel_fail(struct h2_request *rq);  /* the stream is closed */
void h2_tunnel_later(struct h2_request *rq); /* its timer: the connection is gone */
