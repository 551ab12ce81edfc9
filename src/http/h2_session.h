/* h2_session.h - what is asked of nghttp2, and of nobody else in http/. */
#pragma once

#include "http/h2_conn.h"

int h2_session_open(struct h2_conn *c, struct err *err) NODISCARD;
void h2_session_close(struct h2_conn *c); /* fine when there is none */

bool h2_session_knows(const struct h2_conn *c, uint32_t id); /* a stream that is open */

/* A slice of what arrived; what it brought is in c->got. -1: it makes no sense, and the client is
 * told so before the end. */
int h2_session_take(struct h2_conn *c, struct bytes slice, struct err *err) NODISCARD;

/* Appends what is to be sent to c->out, until that is full (c->blocked) or there is no more. */
int h2_session_give(struct h2_conn *c, struct err *err) NODISCARD;

bool h2_session_over(const struct h2_conn *c); /* nothing to read and nothing to send */

/* Say goodbye: with an error at once; or first that it is coming, then which streams still count.
 */
void h2_session_end(struct h2_conn *c, uint32_t code);
void h2_session_warn(struct h2_conn *c);
void h2_session_goaway(struct h2_conn *c);

/* Of a stream. `with_body`: DATA follows, taken from rq->out. */
int h2_session_answer(struct h2_request *rq, const nghttp2_nv *nv, size_t n, bool with_body,
		      struct err *err) NODISCARD;
void h2_session_continue(struct h2_request *rq); /* 100 */
void h2_session_resume(struct h2_request *rq);   /* rq->out, or its end, has come */
void h2_session_reset(struct h2_request *rq, uint32_t code);

/* `n` bytes were used: the client may send as many more. */
void h2_session_used(struct h2_request *rq, size_t n);
void h2_session_used_by_all(struct h2_conn *c, size_t n);
void h2_session_widen(struct h2_conn *c, int32_t id); /* 0: the connection */
