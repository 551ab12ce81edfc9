/* sandbox_ask.h - requests about the sandbox that a path names, of the caller's team. */
#pragma once

#include "gateway/api/api.h"

/* `<id>` or `<id>-<clientID>`, the latter dropped. Answered already when this fails. */
bool sandbox_take_id(struct api_call *c);
void sandbox_ask(struct api_call *c, const struct node_request *rq, uint64_t deadline_ms,
		 api_node_fn *on_done);
/* The same; c->on_refused says who answers when node refuses. */
void sandbox_ask_or(struct api_call *c, const struct node_request *rq, uint64_t deadline_ms,
		    api_node_fn *on_done);
/* What the client is told that names of sandboxes end in; lives as long as the call. */
const char *api_domain(struct api_call *c);
/* Whose limits count, and what they are. */
void sandbox_limit(const struct api_call *c, struct node_request *rq);
/* 404 says why and when it ended, if it did. */
void sandbox_fail(struct api_call *c, const struct node_answer *said);
void sandbox_on_no_content(struct api_call *c, struct node_answer *said);
