/* agent_kill.h - end a process in the guest that agent_exec.h started. */
#pragma once

#include "http/call.h"
#include "vm/agent_link.h"

enum { AGENT_KILL_MS = 10 * 1000 }; /* the agent waits until it was reaped, not for ever */

struct agent_kill;
/* Once; the connection is closed. ERR_NOT_FOUND: there is no such process, maybe any more. */
typedef void agent_kill_done_fn(struct agent_kill *k, const struct err *err);
struct agent_kill { /* embedded by the caller; all zero: nothing under way */
	agent_kill_done_fn *on_done;
	struct http_call call;
};

struct agent_kill_spec {           /* borrowed for the call that starts it */
	struct bytes tag;          /* of the process; empty: */
	uint32_t pid;              /* by its number */
	struct bytes access_token; /* may be empty */
};

/* SIGKILL, to it alone: what it started goes on, until the VM ends. Takes the stream in any case.
 */
int agent_kill_start(struct agent_kill *k, struct stream *s, const struct agent_kill_spec *spec,
		     agent_kill_done_fn *on_done, struct err *err) NODISCARD;
void agent_kill_cancel(struct agent_kill *k); /* no callback; fine when nothing is under way */
