/* furnish.h - what every guest needs and no image brings: the agent, and a few files and folders.
 *
 * An image without what cannot be added, bash and the loader it wants, is refused.
 */
#pragma once

#include "unpack/program.h"
#include "unpack/image.h"

enum { FURNISHED_MAX = 32 };

struct furnished {
	const char *added[FURNISHED_MAX]; /* paths, literals */
	size_t n_added;
	char loader[PROGRAM_LOADER_MAX + 1]; /* of bash; empty: it is static */
};

/* After the last layer. `agent` is a regular file, read from its beginning. */
int furnish(struct image *im, int agent, struct furnished *ret, struct err *err) NODISCARD;
