/* range.h - what of a file a request wants: all of it, a part, or nothing because it has it.
 *
 * RFC 9110 sections 13 and 14, for one validator, the time of the last change, and one range at a
 * time. A request for several ranges gets everything, as the RFC allows.
 */
#pragma once

#include "wire/http1_field.h"

enum range_kind {
	RANGE_ALL,            /* 200 */
	RANGE_PART,           /* 206: `from` and `length`, which is not 0 */
	RANGE_NOT_MODIFIED,   /* 304 */
	RANGE_FAILED,         /* 412: it was changed */
	RANGE_NOT_SATISFIABLE /* 416: malformed, or beyond the end */
};

struct range {
	enum range_kind kind;
	uint64_t from, length;
};

/* `mtime` in seconds since 1970. */
struct range range_of(const struct http1_head *h, uint64_t size, int64_t mtime);

/* Would the client take the file as it is, without a coding? */
bool range_takes_identity(const struct http1_head *h);
