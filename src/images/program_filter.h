/* program_filter.h - a filter for programs of others whose system calls nobody can list: it leaves
 * all but denied_calls.h, and what is said here. Our own programs name theirs (confine_calls.h).
 */
#pragma once

#include "base/err.h"

enum {
	PROGRAM_NO_PROCESSES = 1 << 0, /* it has threads, and no children */
	PROGRAM_NO_SOCKETS = 1 << 1,   /* it makes none, of any kind */
	PROGRAM_NO_SIGNALS = 1 << 2,   /* but to its own threads: of the process that loads it */
};

/* For this process and all it becomes. no_new_privs must be set. */
int program_filter_load(unsigned int also, struct err *err) NODISCARD;
