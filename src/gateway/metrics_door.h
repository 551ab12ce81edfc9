/* metrics_door.h - GET /metrics at an address of its own: plain HTTP, no key, nothing else.
 *
 * For a private network. Several gateways may listen at the same address while one replaces the
 * other.
 */
#pragma once

#include "gateway/gateway.h"
#include "net/listen.h"

enum { METRICS_CONNECTIONS_MAX = 32, METRICS_BACKLOG = 16 };

struct metrics_door { /* all zero: closed */
	struct gateway *g;
	struct http_server http;
	struct listener listener;
};

/* `address` "": it stays closed, and that is no error. Before the process is confined. */
int metrics_door_open(struct metrics_door *d, struct gateway *g, const char *address,
		      struct err *err) NODISCARD;
void metrics_door_close(struct metrics_door *d); /* a second time does nothing */
