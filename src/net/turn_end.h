/* turn_end.h - something to do once, when this turn of the loop is over: before the loop waits for
 * something new to happen.
 *
 * For what is better done once for many: the pieces that were written in a turn leave together. The
 * owner may be freed at once after turn_end_drop().
 */
#pragma once

#include "base/own.h"
#include "net/loop.h"

struct turn_end { /* embedded by its owner; all zero: nothing to do */
	void (*on_end)(struct turn_end *e);
	struct turn_end *next, **prev;
};

/* A second time in a turn does nothing. on_end may add others, not itself. */
void turn_end_add(struct loop *l, struct turn_end *e);
void turn_end_drop(struct turn_end *e); /* fine when there is nothing to do */

void turn_ends_run(struct loop *l); /* for the loop */
