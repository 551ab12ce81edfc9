/* request.h - what node asks of egress: may it be acted on as it is? Pure. */
#pragma once

#include "base/err.h"
#include "egress/protocol.h"

/* `n_fds`: descriptors that came with it. After it the slot is in its table, and an id is one
 * where one is needed. */
int egress_request_check(const struct egress_request *rq, size_t n_fds, struct err *err) NODISCARD;
