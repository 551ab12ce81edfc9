/* command_groups.h - a cgroup for every command, so that it is known whose process the kernel
 * killed when memory ran out.
 *
 * There are at most COMMAND_GROUPS_MAX; who comes when all are in use shares one more. A group is
 * used again as soon as nobody is left in it, whoever its command was. None of them is ever killed
 * by cgroup.kill: kernels exist that kill at birth whoever is cloned into such a group later.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { COMMAND_GROUPS_MAX = 128 };

struct command_group {
	int dir; /* -1: not made yet */
	bool taken, shared;
};

/* What one command holds. All zero: nothing. */
struct command_place {
	struct command_group *group;
	uint64_t oom_kills; /* in it, before the command was there */
};

struct command_groups {
	int parent; /* borrowed; -1: there are no cgroups */
	struct command_group own[COMMAND_GROUPS_MAX], rest;
};

void command_groups_init(struct command_groups *g, int parent);
void command_groups_done(struct command_groups *g); /* the cgroups stay, with who is in them */

/* A place for a command. *ret_dir: the cgroup to be born in, borrowed; -1: stay in the agent's. */
void command_groups_take(struct command_groups *g, struct command_place *ret, int *ret_dir);
void command_place_leave(struct command_place *p); /* a second time does nothing */

/* Did the kernel kill somebody in it for lack of memory, since it was taken? */
bool command_place_oom(const struct command_place *p);
