/* guest_users.h - who has joined a sandbox of guest_cache.h: lists, and everybody is in one. */
#pragma once

#include "base/bytes.h"

struct guest;
struct guest_user;
struct guest_user_ops {
	/* An unconnected socket that is the callee's, or -1 and why: ERR_NOT_FOUND; ERR_DENIED: it
	 * is paused and the token is wrong; ERR_EXISTS, ERR_EXHAUSTED: it cannot be resumed now;
	 * or node cannot be asked. Only when guest_socket() said so; the user may leave. */
	void (*on_socket)(struct guest_user *u, int fd, const struct err *err);
	/* The sandbox is gone. The user has already left. */
	void (*on_gone)(struct guest_user *u);
};
struct guest_users {
	struct guest_user *first, **last;
};
struct guest_user { /* embedded by the user; all zero: not joined */
	const struct guest_user_ops *ops;
	struct guest *guest;
	struct guest_users *in; /* those who wait, or the others */
	struct guest_user *next, **prev;
	/* set before guest_socket(), borrowed while it waits */
	bool to_agent;      /* or to another port: a paused sandbox may want a token for it */
	struct bytes token; /* as the client sent it; no NUL in it */
};

void guest_users_add(struct guest_users *to, struct guest_user *u);
void guest_users_remove(struct guest_user *u);
void guest_users_move(struct guest_user *u, struct guest_users *to);
