/* digest.h - SHA-256 of much: by OpenSSL, which uses what the processor has for it. For short
 * texts, and where OpenSSL is not, there is wire/sha256.h. */
#pragma once

#include "base/bytes.h"

enum { DIGEST_SIZE = 32 };

struct digest;

int digest_new(struct digest **ret, struct err *err) NODISCARD;
int digest_add(struct digest *d, struct bytes piece, struct err *err) NODISCARD;
int digest_end(struct digest *d, uint8_t ret[static DIGEST_SIZE], struct err *err) NODISCARD;
void digest_free(struct digest *d); /* NULL is fine */

static inline void digest_freep(struct digest **d)
{
	digest_free(*d);
}
