/* ready.h - can sandboxes be created on this host now? NODE_READY, for whoever asks /health.
 *
 * That the host is full, or a key has all it may have, is no reason: that is told to who creates.
 */
#pragma once

#include "node/door/gateway_door.h"

/* A daemon that is restarted is away for so long, and creates wait for it. */
enum { READY_GRACE_MS = 2000 };

struct ready { /* both "": it is */
	const char *reason;
	char message[256];
};
void ready_look(const struct node *n, struct ready *ret);

verb_fn ready_ask;
