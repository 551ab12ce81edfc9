/* remote_key.h - inside tls/: keys whose private half is in another process, as the library sees
 * them.
 *
 * The library signs with a key by a call that returns with the signature. For these the call fills
 * `now`, and its handshake is put aside (SSL_ERROR_WANT_ASYNC) until now->state says that it is
 * done, or failed, and the handshake is called again. They work in a handshake with SSL_MODE_ASYNC
 * and nowhere else.
 */
#pragma once

#include <openssl/evp.h>

#include "tls/tls_service.h"

struct remote_keys { /* a library context of their own, so that nobody else finds them */
	OSSL_LIB_CTX *lib;
	OSSL_PROVIDER *usual, *own;
	struct remote_place *place;
};

/* Asked for in this context: what everybody has, before what these keys have. */
#define REMOTE_KEYS_PREFER "?provider=default"

int remote_keys_open(struct remote_keys **ret, struct err *err) NODISCARD;
void remote_keys_close(struct remote_keys *k); /* NULL is fine */

/* Around every call that may sign: whose signature it is; NULL: nobody's, and none is made. */
void remote_keys_now(struct remote_keys *k, struct tls_sign *now);

/* A key with this public half. */
int remote_key_new(struct remote_keys *k, EVP_PKEY *half, EVP_PKEY **ret,
		   struct err *err) NODISCARD;
