/* reset.h - the first request to a daemon that holds something for our sandboxes: forget all of it.
 * What it is to hold is told anew when the link is up.
 */
#pragma once

#include "net/link.h"

enum {
	DAEMON_SILENCE_MS = 10 * 1000,
	DAEMON_CALLS_MAX = 8192, /* messages it has not taken or not answered yet */
	DAEMON_BATCH = 64,
};

/* From on_hello. */
void reset_ask(struct link *l, struct bytes request);
