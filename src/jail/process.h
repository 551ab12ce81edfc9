/* process.h - who runs: what /proc says of the owner of a process. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Does a program run in it, under that uid? Until exec a process that gave up its ids is not
 * dumpable and what is in its /proc folder is root's; afterwards that belongs to its uid. So the
 * owner tells both who it is and that it became what it should. The folder itself is the uid's all
 * the time. A zombie is nobody's. */
bool process_runs_as(pid_t pid, uint32_t uid);

/* Returns 1 and one of that uid, or 0 when there is none; looks at every process of the host. */
int process_of_uid(uint32_t uid, pid_t *ret, struct err *err) NODISCARD;
