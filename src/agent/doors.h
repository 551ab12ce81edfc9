/* doors.h - where the agent listens: one door for the host, one for the sandbox itself.
 *
 * Programs in the sandbox may open as many connections as they like: they use up their own door,
 * never the one through which the host asks whether the sandbox is well.
 */
#pragma once

#include "net/listen.h"

enum {
	DOORS_HOST_MAX = 2048,  /* connections at once */
	DOORS_INSIDE_MAX = 256, /* the same from programs in the sandbox */
};

#define DOORS_HOST_DEVICE "eth0"

struct doors { /* embedded by the owner; all zero: closed */
	void (*on_accept)(struct doors *d, struct stream *s); /* set by the owner */
	struct listener host, inside;
};

/* `ip`: one door at this address for everybody; NULL: two, at all addresses. A port of 0 lets the
 * system choose, for one door alone. */
int doors_open(struct doors *d, struct loop *l, const char *ip, uint16_t port,
	       struct err *err) NODISCARD;
void doors_close(struct doors *d); /* a second time does nothing */
uint16_t doors_port(const struct doors *d);
