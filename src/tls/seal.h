/* seal.h - values that many may carry and one may read.
 *
 * Sealed with a public key (X25519 with a key of this one use, HKDF-SHA-256, AES-256-GCM), bound to
 * a label: the sealed text opens under the same label only. Whoever seals cannot open again.
 * A sealed text is base64; it tells the length of the value and nothing else.
 */
#pragma once

#include "base/bytes.h"

enum {
	SEAL_KEY_TEXT = 44,         /* base64 of 32 bytes; both halves look like this */
	SEAL_VALUE_MAX = 64 * 1024, /* in bytes */
	SEAL_LABEL_MAX = 256,
	SEAL_OVERHEAD = 1 + 4 + 32 + 16, /* version, which key, one-use key, tag */
	SEAL_TEXT_MAX = (SEAL_VALUE_MAX + SEAL_OVERHEAD + 2) / 3 * 4,
};

struct seal_key; /* the private half */

int seal_key_new(struct seal_key **ret, struct err *err) NODISCARD;
int seal_key_load(struct bytes text, struct seal_key **ret, struct err *err) NODISCARD;
/* Texts with a NUL. The private one is to be wiped by the caller: wipe(). */
int seal_key_text(const struct seal_key *k, char ret[SEAL_KEY_TEXT + 1], struct err *err) NODISCARD;
int seal_key_public(const struct seal_key *k, char ret[SEAL_KEY_TEXT + 1],
		    struct err *err) NODISCARD;
void seal_key_free(struct seal_key *k); /* wiped; NULL is fine */

/* ERR_INVALID: not a key, too long a value. ret grows by the sealed text. */
int seal(struct bytes public_text, struct bytes label, struct bytes value, struct buf *ret,
	 struct err *err) NODISCARD;

/* ERR_MISMATCH: sealed for another key. ERR_INVALID: not a sealed text, another label, changed on
 * the way. ret grows by the value, so it is a BUF_SECRET(), and its max a byte more than the
 * value's. */
int unseal(const struct seal_key *k, struct bytes label, struct bytes text, struct buf *ret,
	   struct err *err) NODISCARD;
