/* long_answer.h - an answer that is too long to be sent in one piece, given as the client takes it.
 *
 *	long_answer_begin() -> long_answer_push() -> on_drain: long_answer_push() ... until true
 */
#pragma once

#include "http/request.h"

struct long_answer { /* all zero: none */
	struct buf body;
	size_t sent;
};

/* 200, application/json. Takes the memory of `json`. On failure the request is unanswered. */
int long_answer_begin(struct long_answer *la, struct http_request *rq, struct buf *json,
		      struct err *err) NODISCARD;

/* True: all of it is given, or it broke off; the request has ended and the memory is free. */
bool long_answer_push(struct long_answer *la, struct http_request *rq);
void long_answer_drop(struct long_answer *la); /* the client is gone; fine when there is none */
