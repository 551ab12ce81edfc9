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
