/* requests.h - what gateways ask of node: each verb, what it needs, what it answers. */
#pragma once

#include "base/bytes.h"
#include "node/life/sandbox.h"

typedef void verb_fn(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text);

void requests_open(struct node *n);
void requests_close(struct node *n);
/* As if it had been asked just now. */
void requests_again(struct node *n, struct door_asked *a, const struct node_request *rq,
		    struct bytes text);

/* A sandbox of the team; of requests_alive() not one that ends. NULL: *err. */
struct sandbox *requests_find(struct node *n, const struct node_request *rq, struct err *err);
struct sandbox *requests_alive(struct node *n, const struct node_request *rq, struct err *err);
int requests_not_found(const char *id, struct err *err);
