/* timer.h - a timer that lives inside its owner and costs no memory of its own.
 *
 *	struct session { struct timer idle; ... };
 *	static void on_idle(struct timer *t)
 *	{
 *		session_free(CONTAINER_OF(t, struct session, idle));
 *	}
 *
 * All timers of a loop share one libuv handle, so a stopped timer is plain memory: stop it and
 * free the owner at once, also from inside on_fire.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/own.h"
#include "net/loop.h"

struct timer;
typedef void timer_fire_fn(struct timer *t);
struct timer {
	struct loop *loop;
	timer_fire_fn *on_fire;
	uint64_t at_ms, every_ms, seq;
	bool active;
	struct timer *child, *next, *prev; /* pairing heap: prev is the parent of a first child */
};

void timer_init(struct timer *t, struct loop *l, timer_fire_fn *on_fire);

/* Fire once, `after_ms` from now; 0: in the next turn of the loop. A running timer is moved. */
void timer_start(struct timer *t, uint64_t after_ms);

/* Fire every `every_ms` (not 0) until stopped. Missed beats are not made up for. */
void timer_repeat(struct timer *t, uint64_t every_ms);

/* Never fires after this. Fine on one that does not run, or was never given to timer_init()
 * but is all zero. */
void timer_stop(struct timer *t);
