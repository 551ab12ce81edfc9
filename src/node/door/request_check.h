/* request_check.h - is this datagram a request? What a gateway sends is checked before it is used.
 */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"

/* Afterwards: known version, verb and flags, a tag, strings that end and hold printable ASCII
 * only, what the verb needs is there, numbers in range, a text as long as said and without NUL.
 * ret_text borrows from `in`. On failure ret->tag is the request's tag where there is one, else
 * 0: then nobody can be told. */
int request_check(struct bytes in, struct node_request *ret, struct bytes *ret_text,
		  struct err *err) NODISCARD;
