/* request.h - what node asks of the injector: may it be acted on as it is? Pure. */
#pragma once

#include "base/bytes.h"
#include "injector/protocol.h"

/* `n_fds`: descriptors that came with it. After it texts end, the slot is in its table, and a
 * team's name is fit to be part of a secret's label. */
int injector_request_check(const struct injector_request *rq, size_t n_fds,
			   struct err *err) NODISCARD;
