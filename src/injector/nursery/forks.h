/* forks.h - the process that forks workers, and does nothing else. */
#pragma once

#include <sys/types.h>

#include "injector/nursery.h"

/* Until `sock` ends, or `parent` does. */
_Noreturn void nursery_be(const struct nursery_terms *t, int sock, pid_t parent);
