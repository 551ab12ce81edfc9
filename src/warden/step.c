/* step.c - dying on purpose, in fault tests only. */
#include "warden/step.h"

#if HOTCELL_FAULTS
#include <signal.h>

static const char *step_fatal = "";
static pid_t step_warden;

void step_arm(const char *die_at, pid_t warden)
{
	step_fatal = die_at;
	step_warden = warden;
}

void step(const char *name)
{
	if (strcmp(name, step_fatal) != 0)
		return;
	kill(step_warden, SIGKILL);
	for (;;) /* a job goes no further either: it dies with warden, in its time */
		pause();
}
#endif
