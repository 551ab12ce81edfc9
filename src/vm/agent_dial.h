/* agent_dial.h - reach the guest's agent, however long its guest still boots.
 *
 * One socket, made inside the sandbox's network by someone who may, is used for every attempt: a
 * guest that is not up drops what it is sent, one without an agent refuses, and both end.
 */
#pragma once

#include "net/dial.h"

#define AGENT_ADDRESS "169.254.77.2"

enum {
	AGENT_PORT = 49983,
	AGENT_DIAL_BOOT_MS = 120,    /* an attempt, at least: the guest still boots, so try often */
	AGENT_DIAL_UP_MS = 4 * 1000, /* the same: it is up, and may be slow */
	AGENT_DIAL_LAST_MS = 4 * 1000, /* an attempt, at most */
	AGENT_DIAL_PART = 8,      /* in between: this part of the time that has passed. A guest that
				   * boots slowly answers slowly; one that does not is noticed soon */
	AGENT_DIAL_PAUSE_MS = 20, /* between two attempts */
};

struct agent_dial;
typedef void agent_dial_done_fn(struct agent_dial *d, struct stream *s, const struct err *err);
struct agent_dial { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop: a stream that is now the callee's, or NULL and why. */
	agent_dial_done_fn *on_done;
	struct loop *loop;
	struct addr to;
	int fd; /* kept for the next attempt */
	uint64_t begun_ms, until_ms, attempt_ms;
	struct dial dial;
	struct timer again;
};

struct agent_dial_spec {
	struct loop *loop;
	int fd; /* unconnected; taken, also on failure */
	const struct addr *to;
	uint64_t attempt_ms; /* AGENT_DIAL_BOOT_MS or AGENT_DIAL_UP_MS */
	uint64_t deadline_ms;
};
/* Failure (-1) means that on_done will not come. */
int agent_dial_start(struct agent_dial *d, const struct agent_dial_spec *spec,
		     agent_dial_done_fn *on_done, struct err *err) NODISCARD;
void agent_dial_cancel(struct agent_dial *d); /* fine when nothing is under way */
