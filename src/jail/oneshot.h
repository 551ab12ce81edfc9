/* oneshot.h - run a program of the host to its end, with as little power as its task needs. */
#pragma once

#include "base/bytes.h"

struct oneshot {
	const char *const *argv; /* argv[0] is an absolute path; at most ONESHOT_ARGS_MAX */
	struct bytes input;      /* at most ONESHOT_INPUT_MAX */
	struct buf *output;      /* of its standard output; NULL: thrown away */
	uint64_t capabilities;   /* a bit set; 0 for none */
};

enum { ONESHOT_ARGS_MAX = 7, ONESHOT_INPUT_MAX = 4096 };

/* As nobody, in the caller's namespaces, with an empty environment. Blocks until it has ended;
 * anything but exit status 0 is an error. */
int oneshot_run(const struct oneshot *o, struct err *err) NODISCARD;
