/* network_verbs.h - what a gateway asks of a sandbox's network: other rules, why, what was. */
#pragma once

#include "node/door/gateway_door.h"

struct secret_change;

verb_fn network_put_ask;
verb_fn network_explain_ask;
verb_fn network_log_ask;
/* Of requests under way: another value of a secret; all of them, at node's end. */
void network_jobs_change_secret(struct node *n, const struct secret_change *change);
void network_jobs_close(struct node *n);
