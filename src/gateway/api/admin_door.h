/* admin_door.h - HTTP over a unix socket, for root and one other user. Who asks is the kernel's
 * word (SO_PEERCRED), besides the mode of the socket.
 */
#pragma once

#include "gateway/gateway.h"
#include "net/watch.h"

enum { ADMIN_CONNECTIONS_MAX = 256, ADMIN_BACKLOG = 64, ADMIN_BATCH = 16 };

struct admin_door { /* all zero: closed */
	struct gateway *g;
	struct http_server http;
	struct watch ready;
	int fd; /* of the listening socket; 0: none */
	uid_t uid;
	char path[256]; /* empty: the socket is a service manager's */
};

/* `g` must outlive it. The path is taken over from a socket that nobody listens on. */
int admin_door_open(struct admin_door *d, struct gateway *g, const char *path, uid_t uid,
		    struct err *err) NODISCARD;
/* A unix socket that already listens, from a service manager. Takes fd, also on failure. */
int admin_door_open_fd(struct admin_door *d, struct gateway *g, int fd, uid_t uid,
		       struct err *err) NODISCARD;
/* The gateway will go. One whose socket others have, too, lets nobody in any more. */
void admin_door_drain(struct admin_door *d);
void admin_door_close(struct admin_door *d); /* a second time does nothing */
