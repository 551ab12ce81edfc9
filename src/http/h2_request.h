/* h2_request.h - one stream of an HTTP/2 connection, as a request that handlers answer. */
#pragma once

#include "http/h2_conn.h"

/* --- for h2_session.c: notes; nobody is told ------------------------------------------------- */

struct h2_request *h2_request_new(struct h2_conn *c, int32_t id); /* NULL: no memory */
/* False: it is so large that even reading on is too much. */
bool h2_request_field(struct h2_request *rq, struct bytes name, struct bytes value);
void h2_request_closed(struct h2_request *rq, uint32_t code);
void h2_request_sent_end(struct h2_request *rq);

/* --- for h2_conn.c: handlers are told -------------------------------------------------------- */

/* The connection may be closed after each of these, and rq gone. */
void h2_request_present(struct h2_request *rq);
void h2_request_tell(struct h2_request *rq); /* what is due */

/* The connection is closed: the last word to the handler, if there is one. */
void h2_request_gone(struct h2_request *rq, const struct err *why);

/* Does it wait for its client, and for nobody else? */
bool h2_request_waits(const struct h2_request *rq);

/* --- for h2_body.c, h2_response.c, h2_tunnel.c ----------------------------------------------- */

void h2_request_due(struct h2_request *rq); /* h2_request_tell() soon */
/* End it from our side: with an answer, if there was none and `status` is not 0, else a reset. */
void h2_request_end(struct h2_request *rq, const struct err *why, unsigned int status);
void h2_request_detach(struct h2_request *rq); /* nobody is told any more */
void h2_request_free(struct h2_request *rq);
void h2_request_watch_input(struct h2_request *rq, bool anew); /* does the body come? */
void h2_request_watch_output(struct h2_request *rq);           /* is the answer taken? */
