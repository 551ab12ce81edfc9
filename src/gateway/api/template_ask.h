/* template_ask.h - what handlers about templates share. */
#pragma once

#include "gateway/api/api.h"

/* The template that the path names, which is the team's own. Answered already when this fails. */
bool template_take(struct api_call *c, struct node_request *rq);
void template_create(struct api_call *c); /* of c->team */
/* `text` may be NULL. What node refuses is answered as it says. */
void template_ask(struct api_call *c, const struct node_request *rq, const json_t *text,
		  api_node_fn *on_done);
