/* thaw.h - a sandbox that was stopped for a save goes on: `cont`, its clock, the thaw.
 *
 * Also for one that an earlier node left stopped or frozen: whatever of it is true already is fine.
 */
#pragma once

#include "vm/agent_dial.h"
#include "vm/agent_wake.h"
#include "vm/machine.h"

struct thaw { /* embedded by the owner; all zero: nothing under way */
	/* Once. Failure: the guest runs or not, nobody knows; its end is the owner's. */
	void (*on_done)(struct thaw *t, const struct err *err);
	struct machine *machine;
	const struct agent_identity *identity; /* with `resume` set */
	struct addr agent;
	int socket;
	struct qmp_call cont;
	struct agent_dial dial;
	struct agent_wake wake;
};

/* Takes `agent_socket` in any case. `id` is borrowed until it is over. */
int thaw_start(struct thaw *t, struct machine *m, const struct addr *agent, int agent_socket,
	       const struct agent_identity *id,
	       void (*on_done)(struct thaw *t, const struct err *err), struct err *err) NODISCARD;
void thaw_cancel(struct thaw *t); /* fine when nothing is under way */
