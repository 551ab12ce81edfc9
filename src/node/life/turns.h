/* turns.h - so many at once; the others wait in order. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "net/timer.h"

struct turns;
struct turn;
typedef void turn_fn(struct turn *t);
struct turn {                /* embedded by the one who wants one; all zero: has none, wants none */
	turn_fn *on_turn;    /* once, from the loop */
	struct turns *turns; /* NULL: has none, wants none */
	bool has;
	struct turn *next, **prev; /* while it waits */
};

struct turns {
	size_t max, n; /* n: given out */
	struct turn *first, **last;
	size_t n_waiting;
	struct timer give; /* the next turn of the loop gives out what is free */
};

void turns_open(struct turns *s, struct loop *l, size_t max);
void turns_close(struct turns *s);

void turn_take(struct turns *s, struct turn *t, turn_fn *on_turn);
void turn_leave(struct turn *t); /* whether it has one, waits for one, or neither */
