/* content_disposition.h - the name of a file in a header field. */
#pragma once

#include "base/bytes.h"

/* Appends `inline; filename=...`: bare, quoted, or in the form of RFC 8187, whichever can hold
 * it. Any bytes may be in a name but NUL and '/'. */
int content_disposition_put(struct buf *out, struct bytes name, struct err *err) NODISCARD;
