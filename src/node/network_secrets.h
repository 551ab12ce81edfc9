/* network_secrets.h - sealed values that rules of headers name: another one, or none any more. */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"

enum {
	SECRETS_LOOK_MS = 50,        /* one is on its way to another state: how often to look */
	SECRETS_WAIT_MS = 60 * 1000, /* and for how long */
};

struct node;
struct door_asked;

/* NODE_SECRET: answered when every sandbox of the team that uses it has it in its row, and those
 * that run have a worker that knows it. */
void secrets_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		 struct bytes text);
/* NODE_SEAL_KEY */
void secrets_key_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text);
void secrets_close(struct node *n);
