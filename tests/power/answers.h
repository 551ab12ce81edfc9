/* answers.h - requests of the kernel's FUSE, answered from a store. */
#pragma once

#include <stdint.h>

#include "lossy.h"

enum { ANSWERS_WRITE_MAX = 1 << 20, ANSWERS_REQUEST_MAX = ANSWERS_WRITE_MAX + 4096 };

struct answers {
	struct store *store;
	int fuse;
};

/* One request, as it was read from `fuse`. */
void answers_give(struct answers *a, const uint8_t *request, size_t length);
