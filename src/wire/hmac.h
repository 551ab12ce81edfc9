/* hmac.h - HMAC-SHA-256 (RFC 2104): who has the key made this text. */
#pragma once

#include "wire/sha256.h"

void hmac_sha256(struct bytes key, struct bytes text, uint8_t ret[static SHA256_SIZE]);
/* The same of a text that is in pieces. */
void hmac_sha256_pieces(struct bytes key, const struct bytes *pieces, size_t n,
			uint8_t ret[static SHA256_SIZE]);
