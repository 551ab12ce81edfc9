/* guarded_ports.h - which ports of a template want the traffic token, as its environment says it.
 *
 *	HOTCELL_GUARDED_PORTS=9222/devtools,6080/novnc,8000
 */
#pragma once

#include "base/bytes.h"

#define GUARDED_PORTS_VARIABLE "HOTCELL_GUARDED_PORTS"

enum {
	GUARDED_PORTS_MAX = 16,
	GUARDED_PORTS_TEXT_MAX = 255,
	GUEST_AGENT_PORT = 49983, /* which has a token of its own, and is never one of them */
};

enum guarded_kind { /* what is there */
		    GUARDED_ANY,
		    GUARDED_DEVTOOLS, /* of Chromium: Host and Origin are masked for it */
		    GUARDED_NOVNC,    /* its page is /vnc.html */
		    GUARDED_KINDS,
};

struct guarded_port {
	uint16_t port;
	enum guarded_kind kind;
};

struct guarded_ports {
	struct guarded_port at[GUARDED_PORTS_MAX];
	size_t n;
};

/* Empty: none. ERR_INVALID: no port, one of two meanings, an unknown kind, too many. */
int guarded_ports_parse(struct bytes text, struct guarded_ports *ret, struct err *err) NODISCARD;

/* NULL: it is not guarded. */
const struct guarded_port *guarded_ports_find(const struct guarded_ports *g, uint16_t port);

const char *guarded_kind_name(enum guarded_kind kind); /* "devtools"; "" of any */
