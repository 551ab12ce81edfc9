/* watchdog.h - the service manager hears that this loop still turns: one that hangs is restarted.
 */
#pragma once

#include "base/notify.h"
#include "net/timer.h"

struct watchdog { /* all zero: nobody watches */
	const struct notify *notify;
	struct timer beat;
};

/* `n` must outlive it. It beats from the loop, and so only while that turns. */
void watchdog_start(struct watchdog *w, struct loop *l, const struct notify *n);
/* The same, and says that the daemon is ready. */
void watchdog_ready(struct watchdog *w, struct loop *l, const struct notify *n);
void watchdog_stop(struct watchdog *w); /* a second time is fine */
