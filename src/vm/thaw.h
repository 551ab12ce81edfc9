/* thaw.h - a sandbox that was stopped for a save goes on: `cont`, its clock, the thaw.
 *
 * Also for one that an earlier node left stopped or frozen: whatever of it is true already is fine.
 */
#pragma once

#include "vm/agent_dial.h"
#include "vm/agent_wake.h"
#include "vm/machine.h"

enum { THAW_AGENT_MS = 30 * 1000 }; /* until the agent accepts */

struct thaw;
typedef void thaw_done_fn(struct thaw *t, const struct err *err);
struct thaw { /* embedded by the owner; all zero: nothing under way */
	/* Once. Failure: the guest runs or not, nobody knows; its end is the owner's. */
	thaw_done_fn *on_done;
	struct machine *machine;
	struct agent_identity identity; /* a copy that says `in_place` */
	struct qmp_call cont;
	struct agent_dial dial;
	struct agent_wake wake;
};

struct thaw_spec {
	struct machine *machine;
	const struct addr *agent;
	int socket;                      /* to it; taken in any case */
	const struct agent_identity *id; /* must say `resume` */
};
int thaw_start(struct thaw *t, const struct thaw_spec *spec, thaw_done_fn *on_done,
	       struct err *err) NODISCARD;
/* No callback; fine when nothing is under way. While QEMU is to answer, the machine is closed. */
void thaw_cancel(struct thaw *t);
