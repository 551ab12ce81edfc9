/* built_in.h - what a build left for sandboxes of its template: as whom and where their commands
 * run, and an environment. */
#pragma once

#include "vm/agent_identity.h"
#include "wire/guarded_ports.h"

struct snapshot;

/* Into what an agent will be told. The environment that is there wins. `p` is what the sandbox was
 * made of; NULL, or one that was not built: nothing. */
int built_in_tell(const struct snapshot *p, struct agent_identity *id, struct err *err) NODISCARD;

struct built_in_wishes {                          /* that its environment has for its sandboxes */
	char guarded[GUARDED_PORTS_TEXT_MAX + 1]; /* ports that want the traffic token; "": none */
	bool refusal_pages;                       /* what is refused is shown as a page */
};

int built_in_wishes(const struct snapshot *p, struct built_in_wishes *ret,
		    struct err *err) NODISCARD;

/* ERR_INVALID: it guards ports, and anybody could go round that by the agent. `flags`: NODE_SECURE
 * and so on, of who creates. */
int built_in_allows(const struct snapshot *p, uint32_t flags, struct err *err) NODISCARD;
