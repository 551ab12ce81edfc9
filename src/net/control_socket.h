/* control_socket.h - where one daemon takes orders from another: a SOCK_SEQPACKET unix socket, for
 * root and one other user.
 *
 * It lets them in, a few, answers their hello (base/link_hello.h), and says when one of them has
 * sent something. What that is, and how it is answered, is the owner's.
 */
#pragma once

#include <sys/types.h>

#include "net/timer.h"
#include "net/watch.h"

enum {
	CONTROL_CLIENTS_MAX = 8, /* the one who asks, and what is left of earlier ones */
	CONTROL_BATCH = 8,       /* requests taken from one client per turn */
	CONTROL_REST_MS = 100,   /* after the system had no descriptor left */
	CONTROL_MODE_ALL = 0666, /* who may ask is decided by who it is */
};

struct control_client {
	struct control_socket *of; /* NULL: free */
	int sock;                  /* non-blocking */
	struct watch ready;
	bool greeted; /* its hello was answered: nothing is sent to it before */
};

struct control_socket_ops {
	uint32_t min, max; /* versions of the protocol */
	/* Take one request and answer it. False: there is none, or its client was hung up on. */
	bool (*on_request)(struct control_client *c);
	/* It was hung up on, or went: its place is about to be free. NULL: nobody cares. */
	void (*on_gone)(struct control_client *c);
};

struct control_socket { /* embedded by the owner */
	const struct control_socket_ops *ops;
	struct loop *loop;
	uid_t uid;
	int sock;
	struct watch calling;
	struct timer rest;
	struct control_client clients[CONTROL_CLIENTS_MAX];
};

/* Listens at `path`, removing what was there. Only root and `uid` may ask. */
int control_socket_open(struct control_socket *s, struct loop *l,
			const struct control_socket_ops *ops, const char *path, uid_t uid,
			struct err *err) NODISCARD;
void control_socket_close(struct control_socket *s); /* hangs up on all */

void control_hang_up(struct control_client *c); /* also from inside on_request */
/* It begins anew: what others, who asked before it, have sent and nobody has taken is void. */
void control_alone(struct control_client *c);
