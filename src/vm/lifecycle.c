/* lifecycle.c - the table of legal steps. */
#include "vm/lifecycle.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define TO(s) (1u << (s))
#define DOWN  (TO(VM_STOPPING) | TO(VM_GONE))

static const struct {
	const char *name;
	uint32_t next;
} rules[] = {
	/* clang-format off */
	[VM_NEW]      = { "new",      TO(VM_STARTING) | TO(VM_GONE) },
	[VM_STARTING] = { "starting", TO(VM_LOADING) | TO(VM_PAUSED) | DOWN },
	[VM_LOADING]  = { "loading",  TO(VM_PAUSED) | DOWN },
	[VM_PAUSED]   = { "paused",   TO(VM_RUNNING) | DOWN },
	[VM_RUNNING]  = { "running",  TO(VM_PAUSED) | DOWN },
	[VM_STOPPING] = { "stopping", TO(VM_GONE) },
	[VM_GONE]     = { "gone",     0 },
	/* clang-format on */
};
static_assert(sizeof(rules) / sizeof(rules[0]) == VM_STATES, "a state without a rule");

const char *vm_state_name(enum vm_state s)
{
	return (unsigned int)s < VM_STATES ? rules[s].name : "?";
}

void vm_life_enter(struct vm_life *life, enum vm_state next)
{
	bool known = (unsigned int)life->state < VM_STATES && (unsigned int)next < VM_STATES;

	if (!known || !(rules[life->state].next & TO(next))) {
		fprintf(stderr, "vm: illegal step %s -> %s\n", vm_state_name(life->state),
			vm_state_name(next));
		abort();
	}
	life->state = next;
}
