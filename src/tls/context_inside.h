/* context_inside.h - inside tls/: the context of a service. */
#pragma once

#include "tls/openssl_inside.h"

int tls_service_context(struct tls_context **ret, struct err *err) NODISCARD;
