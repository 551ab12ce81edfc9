/* turn_end.c - see turn_end.h. */
#include "net/turn_end.h"

#include "base/list.h"
#include "net/loop_inside.h"

void turn_end_add(struct loop *l, struct turn_end *e)
{
	if (e->prev)
		return;
	list_add(&l->ends, e);
}

void turn_end_drop(struct turn_end *e)
{
	list_remove(e);
}

void turn_ends_run(struct loop *l)
{
	while (l->ends) {
		struct turn_end *e = l->ends;

		turn_end_drop(e);
		e->on_end(e); /* e may be gone after this */
	}
}
