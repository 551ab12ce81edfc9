/* refusal.h - a guest that speaks HTTP is told in HTTP why its connection came to nothing. */
#pragma once

#include "net/stream.h"

enum { REFUSAL_TEXT_MAX = 1024 }; /* both lines */

/* Writes the whole answer, which ends the conversation. `status`: 403 or 502. `fix`: a second line,
 * who would have to change what; NULL: none. */
int refusal_write(struct stream *s, unsigned int status, const char *why, const char *fix,
		  struct err *err) NODISCARD;
