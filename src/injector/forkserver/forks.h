/* forks.h - the process that forks workers, and does nothing else. */
#pragma once

#include <sys/types.h>

#include "injector/forkserver.h"

/* Until `sock` ends, or `parent` does. */
_Noreturn void forkserver_be(const struct forkserver_terms *t, int sock, pid_t parent);
