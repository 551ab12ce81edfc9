/* sign_key.h - a private key that signs what TLS servers sign, and the name by which both halves of
 * it are known.
 *
 * P-256, P-384, or RSA of SIGN_RSA_MIN to SIGN_RSA_MAX bits.
 */
#pragma once

#include "base/bytes.h"

enum {
	SIGN_ID = 32, /* SHA-256 of the public key, as X.509 writes it (SubjectPublicKeyInfo) */
	SIGN_RSA_MIN = 2048,
	SIGN_RSA_MAX = 4096,   /* a signature of more takes too long for a shared process */
	SIGN_MAX = 512,        /* bytes of a signature */
	SIGN_TEXT_MAX = 32768, /* of a key's file */
	SIGN_ID_HEX = 16,      /* of an id, in messages: enough to tell keys apart */
	SIGN_HASH_MIN = 32,    /* SHA-256 */
	SIGN_HASH_MAX = 48,    /* SHA-384: what the suites of TLS 1.3 have */
};

/* Numbers of TLS (SignatureScheme). With RSA, PKCS is for TLS 1.2 alone. */
enum sign_scheme {
	SIGN_PKCS_SHA256 = 0x0401,
	SIGN_ECDSA_SHA256 = 0x0403,
	SIGN_PKCS_SHA384 = 0x0501,
	SIGN_ECDSA_SHA384 = 0x0503,
	SIGN_PKCS_SHA512 = 0x0601,
	SIGN_ECDSA_SHA512 = 0x0603,
	SIGN_PSS_SHA256 = 0x0804,
	SIGN_PSS_SHA384 = 0x0805,
	SIGN_PSS_SHA512 = 0x0806,
};

struct sign_key;

/* PEM, not encrypted. ERR_INVALID: not a key, not of these kinds, or its halves do not fit. */
int sign_key_load(struct bytes text, struct sign_key **ret, struct err *err) NODISCARD;
void sign_key_free(struct sign_key *k); /* wiped; NULL is fine */
const uint8_t *sign_key_id(const struct sign_key *k);

/* Signs `what` itself, not a hash of it. ERR_INVALID: not a scheme of this kind of key. */
int sign_key_sign(const struct sign_key *k, enum sign_scheme scheme, struct bytes what,
		  uint8_t ret[static SIGN_MAX], size_t *ret_n, struct err *err) NODISCARD;

/* The beginning of an id, for people. */
void sign_id_text(const uint8_t id[static SIGN_ID], char ret[static SIGN_ID_HEX + 1]);
