/* rfc3339.h - points in time as text: 2026-01-02T03:04:05.678901Z. */
#pragma once

#include "base/bytes.h"

enum { RFC3339_SIZE = 40 };

/* Nanoseconds since 1970, in UTC, with `digits` (0 to 9) of a second's fraction; the rest is cut.
 */
void rfc3339_put(uint64_t ns, unsigned int digits, char ret[static RFC3339_SIZE]);

/* All of `in`; any offset. Refused: before 1970, after 2200, days that do not exist. */
int rfc3339_parse(struct bytes in, uint64_t *ret_ns, struct err *err) NODISCARD;
