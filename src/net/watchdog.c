/* watchdog.c - see watchdog.h. */
#include "net/watchdog.h"

static void on_beat(struct timer *t)
{
	notify_say(CONTAINER_OF(t, struct watchdog, beat)->notify, "WATCHDOG=1");
}

void watchdog_start(struct watchdog *w, struct loop *l, const struct notify *n)
{
	w->notify = n;
	timer_init(&w->beat, l, on_beat);
	if (n->beat_ms > 0)
		timer_repeat(&w->beat, n->beat_ms);
}

void watchdog_ready(struct watchdog *w, struct loop *l, const struct notify *n)
{
	notify_say(n, "READY=1");
	watchdog_start(w, l, n);
}

void watchdog_stop(struct watchdog *w)
{
	timer_stop(&w->beat);
}
