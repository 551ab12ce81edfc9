/* program.h - another program is run, without a shell, and what it says is kept. */
#pragma once

#include <stdint.h>

#include "base/err.h"

enum { PROGRAM_SAID_SIZE = 8192 };

struct program {
	int status;                   /* its exit status; 128 and the signal that ended it */
	char said[PROGRAM_SAID_SIZE]; /* standard output and error; cut at its end */
};

/* argv[0] is looked for in PATH. It has `ms`, then it is killed: ERR_TIMEOUT. Failure: it did not
 * run, or not to its end; an exit status is no failure. */
int program_run(const char *const *argv, uint64_t ms, struct program *ret,
		struct err *err) NODISCARD;
