/* step.h - the named steps of starting and stopping, where a fault test may kill warden.
 *
 * In a release build a step is nothing. Built with -Dfaults=true, the name in the
 * configuration's `die_at` is compared with each step; a match sends SIGKILL to warden.
 */
#pragma once

#include <sys/types.h>

#if HOTCELL_FAULTS
/* Remember whom to kill, and where. Inherited by the jobs. */
void step_arm(const char *die_at, pid_t warden);
void step(const char *name);
#else
static inline void step_arm(const char *die_at, pid_t warden)
{
	(void)die_at;
	(void)warden;
}
static inline void step(const char *name)
{
	(void)name;
}
#endif
