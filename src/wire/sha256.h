/* sha256.h - SHA-256 (FIPS 180-4): of API keys and of signed URLs. */
#pragma once

#include "base/bytes.h"

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64, SHA256_HEX = 2 * SHA256_SIZE };

struct sha256 {
	uint32_t state[8];
	uint64_t total; /* bytes so far */
	uint8_t block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, struct bytes piece);
void sha256_end(struct sha256 *s, uint8_t ret[static SHA256_SIZE]); /* s is used up */

void sha256_of(struct bytes all, uint8_t ret[static SHA256_SIZE]);
void sha256_hex_of(struct bytes all, char ret[static SHA256_HEX + 1]); /* lower case, a NUL */
