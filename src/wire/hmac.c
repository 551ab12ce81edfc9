/* hmac.c - see hmac.h. */
#include "wire/hmac.h"

static void begin(struct sha256 *s, const uint8_t key[static SHA256_BLOCK], uint8_t pad)
{
	uint8_t block[SHA256_BLOCK];

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = key[i] ^ pad;
	sha256_init(s);
	sha256_add(s, (struct bytes){ block, sizeof(block) });
	explicit_bzero(block, sizeof(block));
}

void hmac_sha256_pieces(struct bytes key, const struct bytes *pieces, size_t n,
			uint8_t ret[static SHA256_SIZE])
{
	uint8_t block[SHA256_BLOCK] = { 0 }, inner[SHA256_SIZE];
	struct sha256 s;

	if (key.len > sizeof(block))
		sha256_of(key, block);
	else if (key.len > 0)
		memcpy(block, key.ptr, key.len);
	begin(&s, block, 0x36);
	for (size_t i = 0; i < n; i++)
		sha256_add(&s, pieces[i]);
	sha256_end(&s, inner);
	begin(&s, block, 0x5c);
	sha256_add(&s, (struct bytes){ inner, sizeof(inner) });
	sha256_end(&s, ret);
	explicit_bzero(block, sizeof(block));
}

void hmac_sha256(struct bytes key, struct bytes text, uint8_t ret[static SHA256_SIZE])
{
	hmac_sha256_pieces(key, &text, 1, ret);
}
