/* step.h - the named steps of a sandbox's life, where a fault test may kill node.
 *
 * In a release build a step is nothing. Built with -Dfaults=true, `die_at = create.slot:3` lets
 * node kill itself when it reaches that step for the third time.
 */
#pragma once

#if HOTCELL_FAULTS
void step_arm(const char *die_at); /* must outlive the process */
void step(const char *name);
#else
static inline void step_arm(const char *die_at)
{
	(void)die_at;
}
static inline void step(const char *name)
{
	(void)name;
}
#endif
