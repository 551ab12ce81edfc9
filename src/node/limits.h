/* limits.h - how much one key may have at once: what runs by it, and what waits to. */
#pragma once

#include "node/protocol.h"
#include "base/err.h"

struct node;

/* Would one more of these sizes be too much? Those of the team that were made by the same key are
 * counted: that run, and creates that wait or are being done. Paused ones are not. ERR_EXHAUSTED:
 * the limit. */
int limits_allow(const struct node *n, const char *team, const char *key_id,
		 const struct node_limits *l, struct err *err) NODISCARD;

/* Is there room for one more that is paused, of the key and on the host? Those being paused count.
 * A create is asked this, too, so that what runs finds room when its time is over: a pause that
 * nobody asked for is never refused, so there may be more than the limit by what runs.
 * ERR_EXHAUSTED. */
int limits_allow_paused(const struct node *n, const char *team, const char *key_id,
			const struct node_limits *l, struct err *err) NODISCARD;
