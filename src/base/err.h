/* err.h - the one way a function explains why it failed.
 *
 * The caller owns the storage (usually on its stack), so reporting an error never
 * allocates and never leaks. A function that can fail takes a `struct err *` last,
 * returns -1 (or NULL) after filling it, and leaves it untouched on success.
 */
#pragma once

#include "base/own.h"

enum err_code { /* stable: each maps to one Connect code and one exit status */
		ERR_NONE,
		ERR_INVALID,     /* what we were given is wrong; trying again will not help */
		ERR_NOT_FOUND,   /* the thing named does not exist */
		ERR_EXISTS,      /* the thing named exists already */
		ERR_DENIED,      /* not allowed */
		ERR_EXHAUSTED,   /* a limit was reached */
		ERR_MISMATCH,    /* a snapshot does not fit this host */
		ERR_TIMEOUT,     /* no answer in time */
		ERR_UNAVAILABLE, /* the other side is gone or not there yet */
		ERR_INTERNAL,    /* a fault of ours or of the system */
		ERR_NO_SPACE,    /* a disk is full; what is on it is unharmed */
		ERR_NO_FILES,    /* what was saved is not where it was; nothing was deleted */
		ERR_BASE_LOST,   /* what was saved is there, the template it differs from is not:
				    gone, damaged, or another */
		ERR_VERSION,     /* the two sides speak no common version of their protocol */
		ERR_CODES,
};

struct err {
	enum err_code code;
	int sys;       /* errno at the origin, 0 if none */
	char msg[256]; /* outermost context first: "start vm 7f: connect qmp.sock: ..." */
};

/* Record the origin of a failure. Always returns -1, so `return err_set(...)` reads well. */
int err_set(struct err *err, enum err_code code, int sys, const char *fmt, ...) PRINTF(4, 5);

/* Prefix what the caller was doing. Always returns -1. */
int err_wrap(struct err *err, const char *fmt, ...) PRINTF(2, 3);

/* A stable word for logs and machines: "not_found". */
const char *err_name(enum err_code code);
