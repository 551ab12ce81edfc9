/* json_mend.h - JSON that jansson refuses, though programs write it: made such that it does not.
 *
 * Python writes a file name that is no UTF-8 with the bytes that it has. JavaScript writes halves
 * of surrogate pairs. Both write NUL in the name of a member. Each of these becomes U+FFFD. What
 * else is wrong with the text stays as it is.
 */
#pragma once

#include "base/bytes.h"

/* Appends. */
int json_mend(struct bytes in, struct buf *out, struct err *err) NODISCARD;
