/* refusal.h - a guest that speaks HTTP is told in HTTP why its connection came to nothing. */
#pragma once

#include "net/stream.h"

enum { REFUSAL_WHY_MAX = 512 };

/* Writes the whole answer, which ends the conversation. `status`: 403 or 502. */
int refusal_write(struct stream *s, unsigned int status, const char *why,
		  struct err *err) NODISCARD;
