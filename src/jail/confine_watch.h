/* confine_watch.h - tests see what a filter refuses, and try filters that allow less. Part of
 * confine().
 *
 * In a release build it is nothing. Built with -Dfaults=true, the environment's HOTCELL_SYSCALLS
 * is looked at: `told` writes each call that is refused to stderr, which still fails with EPERM;
 * `without:WHO:NAME` does the same, and leaves NAME out of the filter of WHO, which is what stands
 * before its lines of the log.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#if HOTCELL_FAULTS
/* What the filter does with calls it does not allow. */
uint32_t confine_watch_refusal(void);
bool confine_watch_leaves_out(const char *name);
/* Before the filter holds. */
int confine_watch_begin(struct err *err) NODISCARD;
#else
#include <errno.h>
#include <seccomp.h>

static inline uint32_t confine_watch_refusal(void)
{
	return SCMP_ACT_ERRNO(EPERM);
}
static inline bool confine_watch_leaves_out(const char *name)
{
	(void)name;
	return false;
}
static inline int confine_watch_begin(struct err *err)
{
	(void)err;
	return 0;
}
#endif
