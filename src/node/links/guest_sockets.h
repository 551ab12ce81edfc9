/* guest_sockets.h - sockets inside a sandbox's network, from warden: as many as asked for. */
#pragma once

#include "node/links/warden_client.h"

struct guest_sockets { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop. The callee takes what it wants of fds, the rest is closed. */
	void (*on_done)(struct guest_sockets *g, int *fds, const struct err *err);
	struct link_call ask;
};

/* For the VM `id`, waiting for warden as long as warden_again() does. */
void guest_sockets_ask(struct guest_sockets *g, struct warden_client *k, const char *id,
		       uint32_t count, uint64_t wait_ms,
		       void (*on_done)(struct guest_sockets *g, int *fds, const struct err *err));
void guest_sockets_cancel(struct guest_sockets *g); /* fine when over */
