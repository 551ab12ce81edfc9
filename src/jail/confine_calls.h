/* confine_calls.h - all that is left of the system calls, by seccomp. Part of confine(), and for
 * who gives up the rest before, or was forked by one that did. */
#pragma once

#include "base/err.h"

/* `names` ends with NULL; one the kernel's table does not have is an error. no_new_privs must be
 * set. For every thread of the process. In a build with sanitizers, whose own calls nobody can
 * list, what is not named is allowed and only what has a condition is refused.
 * A second time there are two filters, and what either of them refuses is refused. */
int confine_calls(const char *const *names, struct err *err) NODISCARD;
