/* limits.h - how much one key and one team may have at once: what runs by it, and what waits to. */
#pragma once

#include "node/protocol.h"
#include "base/err.h"

struct node;
struct create;

struct limits_sizes { /* of one sandbox */
	uint32_t vcpus, memory_mib, disk_mib;
};
struct limits_sizes limits_of_create(const struct create *c); /* that it will have */

/* Would one more of these sizes be too much, of the request's key or of the team? Those of the team
 * are counted, for the key those that were made by it: that run, and creates that wait or are being
 * done. Paused ones are not. ERR_EXHAUSTED: the limit. */
int limits_allow(const struct node *n, const char *team, const struct node_request *rq,
		 struct limits_sizes more, struct err *err) NODISCARD;

/* Is there room for one more that is paused, of the key, of the team and on the host? Those being
 * paused count. A create is asked this, too, so that what runs finds room when its time is over: a
 * pause that nobody asked for is never refused, so there may be more than the limit by what runs.
 * ERR_EXHAUSTED. */
int limits_allow_paused(const struct node *n, const char *team, const struct node_request *rq,
			struct err *err) NODISCARD;
