/* refuse.h - to say no in HTTP: the body of an error answer, and an answer of which nothing
 * follows.
 */
#pragma once

#include "base/bytes.h"
#include "net/stream.h"

enum { HTTP_ERROR_MAX = 512, HTTP_REFUSAL_MAX = 4 * HTTP_ERROR_MAX + 1024 };

/* The body of an error answer: {"code":404,"message":"..."}. Cut to HTTP_ERROR_MAX. */
struct buf http_error_body(unsigned int status, const char *message);

/* A whole answer, after which the connection closes; at most HTTP_REFUSAL_MAX bytes. */
int http_put_refusal(struct buf *out, unsigned int status, const char *message,
		     struct err *err) NODISCARD;

/* Answers without having been asked, and closes: to somebody who is not served. Takes the stream.
 */
void http_refuse(struct stream *s, unsigned int status, const char *message);
