/* program.h - another program is run, without a shell, and what it says is kept. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
	PROGRAM_SAID_SIZE = 8192,
	PROGRAM_S = 10, /* for one that is only asked something, such as its version */
};

struct program {
	int status;                   /* its exit status; 128 and the signal that ended it */
	char said[PROGRAM_SAID_SIZE]; /* standard output and error; cut at its end */
};

/* argv[0] is looked for in PATH. It has `ms`, then it is killed: ERR_TIMEOUT. Failure: it did not
 * run, or not to its end; an exit status is no failure. */
int program_run(const char *const *argv, uint64_t ms, struct program *ret,
		struct err *err) NODISCARD;

/* What a program prints, at most size - 1 bytes of it. It has PROGRAM_S. False: nothing, and *ret
 * is why: "does not run", or that the time is over. */
bool program_output(const char *const *argv, char *ret, size_t size);
/* The same, errors too; it is started in a network of its own, which only root can make. */
bool program_output_apart(const char *const *argv, char *ret, size_t size);
