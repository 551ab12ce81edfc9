/* requests.h - what gateways ask of node: each verb, what it needs, what it answers. */
#pragma once

#include "base/bytes.h"
#include "node/life/sandbox.h"

void requests_open(struct node *n);
void requests_close(struct node *n);
/* As if it had been asked just now. */
verb_fn requests_again;

/* A sandbox of the team; of requests_alive() not one that ends. NULL: *err. */
struct sandbox *requests_find(struct node *n, const struct node_request *rq, struct err *err);
struct sandbox *requests_alive(struct node *n, const struct node_request *rq, struct err *err);
int requests_not_found(const char *id, struct err *err);
