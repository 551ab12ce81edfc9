/* requests_paused.h - what is asked of a sandbox that is paused, or on its way to or from there. */
#pragma once

#include "node/life/requests.h"

verb_fn requests_pause;
/* One to be copied, now or when it has come to rest. NULL: *err; ERR_EXISTS: it is paused. */
struct sandbox *requests_to_copy(struct node *n, const struct node_request *rq, struct err *err);
bool requests_rests(const struct sandbox *s); /* it is paused, whatever waits for it */
bool requests_copies_now(const struct sandbox *s, const struct node_request *rq);
void requests_resume(struct sandbox *s, struct door_asked *a, const struct node_request *rq);
void requests_traffic(struct sandbox *s, struct door_asked *a, const struct node_request *rq);
