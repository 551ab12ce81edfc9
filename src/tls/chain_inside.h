/* chain_inside.h - inside tls/: what chains and tests need of a service. */
#pragma once

#include "tls/openssl_inside.h"
#include "tls/tls_service.h"

struct remote_keys *tls_service_keys(struct tls_service *s);
SSL_CTX *tls_service_ssl(struct tls_service *s);
void tls_service_rotate(struct tls_service *s); /* as if a period of tickets were over */
