/* reply.h - answers that every route gives: errors of REST calls and of unary RPCs. */
#pragma once

#include "http/request.h"
#include "wire/connect.h"

enum { REPLY_MESSAGE_MAX = 8 * 1024 }; /* of an error, in bytes: a path fits in; the rest is cut */

/* {"code":404,"message":"..."}. Unlike http_fail() it spells names in UTF-8 as they are. */
void reply_fail(struct http_request *rq, unsigned int status, const char *fmt, ...) PRINTF(3, 4);

/* {"code":"unimplemented","message":"..."} with the status that belongs to the code. */
void reply_rpc_fail(struct http_request *rq, enum connect_code code, const char *message);

/* 200, application/json. `body` is borrowed. */
void reply_json(struct http_request *rq, struct bytes body);

/* The media type of the request, without its parameters. */
bool request_is(const struct http_request *rq, const char *media_type);
