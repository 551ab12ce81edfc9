/* guest_users.c - see guest_users.h. */
#include "gateway/relay/guest_users.h"

void guest_users_add(struct guest_users *to, struct guest_user *u)
{
	u->in = to;
	u->next = NULL;
	u->prev = to->last;
	*to->last = u;
	to->last = &u->next;
}

void guest_users_remove(struct guest_user *u)
{
	*u->prev = u->next;
	if (u->next)
		u->next->prev = u->prev;
	else
		u->in->last = u->prev;
	u->in = NULL;
}

void guest_users_move(struct guest_user *u, struct guest_users *to)
{
	guest_users_remove(u);
	guest_users_add(to, u);
}
