/* sandbox_ask.h - requests about the sandbox that a path names, of the caller's team. */
#pragma once

#include "gateway/api/api.h"

/* `<id>` or `<id>-<clientID>`, the latter dropped. Answered already when this fails. */
bool sandbox_take_id(struct api_call *c);
void sandbox_ask(struct api_call *c, const struct node_request *rq, uint64_t deadline_ms,
		 void (*on_done)(struct node_call *call, const struct node_reply *reply,
				 struct bytes after, int *fds, size_t n_fds,
				 const struct err *err));
/* Whose limits count, and what they are. */
void sandbox_limit(const struct api_call *c, struct node_request *rq);
/* 404 says why and when it ended, if it did; `reply` may be NULL. */
void sandbox_fail(struct api_call *c, const struct node_reply *reply, const struct err *err);
void sandbox_on_no_content(struct node_call *call, const struct node_reply *reply,
			   struct bytes after, int *fds, size_t n_fds, const struct err *err);
