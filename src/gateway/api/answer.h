/* answer.h - how the control plane answers. */
#pragma once

#include "http/server.h"
#include "node/protocol.h"
#include "wire/json.h"

struct api_call;
struct node_answer;

/* What was done is perhaps not what was meant: the answer says so in X-Hotcell-Warning. What a
 * client chose in it comes out as printable ASCII; what is too long is cut. */
void api_warn(struct api_call *c, const char *fmt, ...) PRINTF(2, 3);

/* Each ends the call. `body` is taken; NULL for none. */
void api_answer(struct api_call *c, unsigned int status, json_t *body);
void api_answer_with(struct api_call *c, unsigned int status, json_t *body,
		     const struct http1_field *extra, size_t n_extra);
/* 200 with a text; takes what is in `text`. */
void api_answer_text(struct api_call *c, struct bytes type, struct buf *text);
void api_fail(struct api_call *c, unsigned int status, const char *fmt, ...) PRINTF(3, 4);
void api_fail_err(struct api_call *c, const struct err *err); /* of node or store */
void api_fail_reply(struct api_call *c, const struct node_answer *said);
unsigned int api_status_of(enum err_code code); /* what api_fail_err() answers with */
void api_refuse(struct http_request *rq, unsigned int status, const char *message,
		const char *allow); /* before there is a call */
void api_preflight(struct http_request *rq);
json_t *api_time(uint64_t ns); /* since 1970, as clients want it */
void api_send_more(struct api_call *c);
void api_not_built(struct api_call *c); /* the handler of routes that E2B has: 501 */
