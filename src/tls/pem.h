/* pem.h - inside tls/: certificates and keys as texts, and back. */
#pragma once

#include "tls/openssl_inside.h"

/* Pushes all certificates of a text, 1 to `max`, and passes over what stands between them. */
int pem_read_certs(struct bytes text, int max, STACK_OF(X509) * to, struct err *err) NODISCARD;

/* The first key of a text; one that wants a password is refused. */
int pem_read_key(struct bytes text, EVP_PKEY **ret, struct err *err) NODISCARD;

/* `first`, then `rest`, which may be NULL; appended. */
int pem_write_certs(X509 *first, STACK_OF(X509) * rest, struct buf *ret, struct err *err) NODISCARD;

int pem_write_key(EVP_PKEY *key, struct buf *ret, struct err *err) NODISCARD; /* BUF_SECRET() */
