/* must.h - what every fuzz target shares: a promise that is checked, and the entry point.
 *
 * A target checks promises, not only crashes: a parser that misreads without touching foreign
 * memory is as dangerous as one that overflows.
 */
#pragma once

#include <stdio.h>

#include "base/bytes.h"

#define MUST(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: broken promise: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A refusal says why, in a terminated message. */
static inline void must_say_why(const struct err *err)
{
	MUST(err->code > ERR_NONE && err->code < ERR_CODES);
	MUST(err->msg[0] != '\0' && memchr(err->msg, 0, sizeof(err->msg)));
}

/* What borrows stays inside what was lent. */
static inline bool inside(struct bytes part, struct bytes whole)
{
	return part.len == 0 || (part.ptr >= whole.ptr && part.len <= whole.len &&
				 (size_t)(part.ptr - whole.ptr) <= whole.len - part.len);
}
