/* long_answer.c - see long_answer.h. */
#include "agent/rpc/long_answer.h"

enum {
	PIECE_MAX = 64 * 1024,
	QUEUE_ENOUGH = 64 * 1024, /* to be sent: wait for the client */
};

int long_answer_begin(struct long_answer *la, struct http_request *rq, struct buf *json,
		      struct err *err)
{
	static const struct http1_field field = {
		BYTES_LIT("content-type"),
		BYTES_LIT("application/json"),
	};
	const struct http_response r = { 200, &field, 1, (int64_t)json->len };

	if (http_respond(rq, &r, err) < 0)
		return -1;
	*la = (struct long_answer){ *json, 0 };
	*json = (struct buf){ 0 };
	return 0;
}

bool long_answer_push(struct long_answer *la, struct http_request *rq)
{
	struct err err;

	while (la->sent < la->body.len) {
		struct bytes piece =
			bytes_head(bytes_tail(buf_view(&la->body), la->sent), PIECE_MAX);

		if (http_queued(rq) > QUEUE_ENOUGH)
			return false;
		if (http_send(rq, piece, &err) < 0) {
			http_abort(rq);
			long_answer_drop(la);
			return true;
		}
		la->sent += piece.len;
	}
	http_finish(rq);
	long_answer_drop(la);
	return true;
}

void long_answer_drop(struct long_answer *la)
{
	buf_done(&la->body);
	la->sent = 0;
}
