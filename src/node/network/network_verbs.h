/* network_verbs.h - what a gateway asks of a sandbox's network: other rules, why, what was. */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"

struct node;
struct door_asked;
struct secret_change;

void network_put_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text);
void network_explain_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
			 struct bytes text);
void network_log_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		     struct bytes text);
/* Of requests under way: another value of a secret; all of them, at node's end. */
void network_jobs_change_secret(struct node *n, const struct secret_change *change);
void network_jobs_close(struct node *n);
