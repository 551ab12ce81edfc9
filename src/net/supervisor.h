/* supervisor.h - what a service manager hands to a daemon: sockets that listen, and where to say
 * that it is ready. The words are systemd's: LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES, NOTIFY_SOCKET.
 *
 * A socket that the manager holds goes on listening while no daemon runs, and several may accept
 * from it: whoever connects meanwhile waits in the kernel and is not refused.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/notify.h"

enum {
	SUPERVISOR_SOCKETS_MAX = 8,
	SUPERVISOR_NAME_SIZE = 32, /* with its NUL */
	SUPERVISOR_STATE_MAX = NOTIFY_STATE_MAX,
};

struct supervisor { /* all zero: there is none */
	struct supervisor_socket {
		char name[SUPERVISOR_NAME_SIZE];
		int fd; /* -1: given on */
	} sockets[SUPERVISOR_SOCKETS_MAX];
	size_t n_sockets;
	struct notify notify;
};

/* Reads the environment and takes the variables out of it, so before there are threads. Without
 * any, or with those of another process, there is no supervisor and that is no error. Every socket
 * must be one of streams that listens; from here on it is close-on-exec and does not block. */
int supervisor_open(struct supervisor *s, struct err *err) NODISCARD;

/* The socket of that name; it is the caller's from now on. -1: none. */
int supervisor_take(struct supervisor *s, const char *name);

/* The name of one that nobody took; NULL: none is left. It is closed. */
const char *supervisor_drop(struct supervisor *s);

/* "READY=1", "STATUS=..."; several with a newline between them. Nobody waits for an answer. */
void supervisor_say(struct supervisor *s, const char *state);

void supervisor_close(struct supervisor *s); /* with what was not taken; a second time is fine */
