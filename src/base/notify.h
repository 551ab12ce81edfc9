/* notify.h - tell the service manager that this daemon is ready, and that its loop still turns.
 * The words are systemd's: NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID. */
#pragma once

#include <stdint.h>

#include "base/err.h"

enum { NOTIFY_STATE_MAX = 256 };

struct notify {           /* all zero: nobody wants to hear of us */
	int sock;         /* 0: none */
	uint64_t beat_ms; /* "WATCHDOG=1" is to be said this often; 0: never */
};

/* Reads the environment and takes these variables out of it: before there are threads, and before
 * the process is confined. */
int notify_open(struct notify *n, struct err *err) NODISCARD;
/* "READY=1", "STATUS=..."; several with a newline between them. Nobody waits for an answer. */
void notify_say(const struct notify *n, const char *state);
void notify_close(struct notify *n);
