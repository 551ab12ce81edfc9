/* built_in.h - what a build left for sandboxes of its template: as whom and where their commands
 * run, and an environment. */
#pragma once

#include "vm/agent_identity.h"
#include "wire/guarded_ports.h"

struct snapshot;

/* Into what an agent will be told. The environment that is there wins. `p` is what the sandbox was
 * made of; NULL, or one that was not built: nothing. */
int built_in_tell(const struct snapshot *p, struct agent_identity *id, struct err *err) NODISCARD;

/* Which of its ports want the traffic token; "": none. */
int built_in_guarded(const struct snapshot *p, char ret[static GUARDED_PORTS_TEXT_MAX + 1],
		     struct err *err) NODISCARD;
