/* guest_users.c - see guest_users.h. */
#include "gateway/relay/guest_users.h"

#include "base/list.h"

void guest_users_add(struct guest_users *to, struct guest_user *u)
{
	u->in = to;
	queue_add(to, u);
}

void guest_users_remove(struct guest_user *u)
{
	queue_remove(u->in, u);
	u->in = NULL;
}

void guest_users_move(struct guest_user *u, struct guest_users *to)
{
	guest_users_remove(u);
	guest_users_add(to, u);
}
