/* call.h - one small request, one small answer, one callback. */
#pragma once

#include "http/client.h"

struct http_call;
struct http_call_result {
	const struct http1_head *head; /* of the answer; NULL when it failed */
	struct bytes body;             /* borrowed for the call */
};

typedef void http_call_done_fn(struct http_call *c, const struct http_call_result *ret,
			       const struct err *err);
struct http_call { /* embedded by the caller; all zero: nothing under way */
	/* Once. err is NULL when a whole answer arrived, whatever its status. The call is over and
	 * may be freed or made again. */
	http_call_done_fn *on_done;
	struct http_exchange *exchange;
	struct http_client *owned; /* of http_call_stream() */
	struct http_reply reply;
	const struct http1_head *head;
	struct buf body;
};

/* ask->body is all there is. */
int http_call_start(struct http_call *c, struct http_client *client, const struct http_ask *ask,
		    http_call_done_fn *on_done, struct err *err) NODISCARD;

/* The same on a stream of its own, which is taken in any case and closed afterwards. */
int http_call_stream(struct http_call *c, struct stream *s, const struct http_ask *ask,
		     http_call_done_fn *on_done, struct err *err) NODISCARD;

void http_call_cancel(struct http_call *c); /* on_done will not come */
