/* sign_key_inside.h - inside tls/: what is true of both halves of a key that signs. */
#pragma once

#include <openssl/evp.h>

#include "tls/sign_key.h"

/* One of the kinds in sign_key.h? */
int sign_kind_check(EVP_PKEY *key, bool *ret_rsa, struct err *err) NODISCARD;
int sign_id_of(EVP_PKEY *key, uint8_t ret[static SIGN_ID], struct err *err) NODISCARD;
