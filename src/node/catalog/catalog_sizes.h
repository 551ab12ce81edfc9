/* catalog_sizes.h - what snapshots take of the disk, looked at when an operator asks.
 *
 * A thread looks, for there may be thousands of files: once for all who ask meanwhile, and once for
 * all pages of a list.
 */
#pragma once

#include "node/door/gateway_door.h"

struct sizes_job;
struct sizes_asked;

struct catalog_sizes {
	struct sizes_job *job; /* NULL: nobody looks now */
	struct sizes_asked *asked;
	bool known; /* by the last look */
};

/* `then` is called when sizes are in own_bytes and shared_bytes of each snapshot: after a look,
 * also when that failed; of a later page of a list (after_ns) now. */
void sizes_ask(struct node *n, struct door_asked *a, const struct node_request *rq, verb_fn *then);
void sizes_close(struct node *n);
