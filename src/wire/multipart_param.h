/* multipart_param.h - `; name="value"` after the first word of a field; inside wire/ only. */
#pragma once

#include "base/bytes.h"
#include "wire/decode.h"

struct multipart_param {
	struct bytes name, value; /* the value without its quotes */
};

/* The parameters of a field's value: from its first ';' on, or nothing. */
struct bytes multipart_params(struct bytes value);

/* Cut the next parameter off *rest, which lies in `home`: quotes are undone in its place.
 * MORE: there is none left. A backslash escapes only what would end or split a parameter; before
 * anything else it is itself, for there are clients that escape nothing. */
enum decode multipart_next_param(struct buf *home, struct bytes *rest, struct multipart_param *ret,
				 struct err *err) NODISCARD;
