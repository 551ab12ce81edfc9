/* newborn.h - a worker's first moments: a fork of the forkserver becomes less than that. */
#pragma once

#include <sys/types.h>

#include "injector/worker/worker.h"

/* `fds` as in order.h. Its whole life. */
_Noreturn void newborn_live(const struct worker_tools *tools, const int *fds, pid_t parent);

/* Not to outlive `parent`: fork and another user make that forgotten. */
int newborn_end_with(pid_t parent, struct err *err) NODISCARD;
