/* step.c - dying on purpose, in fault tests only. */
#include "node/life/step.h"

#if HOTCELL_FAULTS
#include <signal.h>
#include <string.h>

#include "base/bytes.h"

static struct bytes step_fatal;
static uint64_t step_left;

void step_arm(const char *die_at)
{
	struct bytes rest = bytes_str(die_at), name;

	step_left = 1;
	if (bytes_cut(&rest, ':', &name) && bytes_to_u64(rest, &step_left))
		step_fatal = name;
	else
		step_fatal = bytes_str(die_at);
}

void step(const char *name)
{
	if (!bytes_eq(bytes_str(name), step_fatal) || --step_left > 0)
		return;
	raise(SIGKILL);
}
#endif
