/* sha256.c - SHA-256 as FIPS 180-4 writes it; plain, since it hashes only short texts. */
#include "wire/sha256.h"

enum { ROUNDS = 64, LENGTH_AT = SHA256_BLOCK - 8 };

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constant[ROUNDS] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotate(uint32_t v, unsigned int by)
{
	return v >> by | v << (32 - by);
}

static uint32_t load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static void schedule(const uint8_t *block, uint32_t w[static ROUNDS])
{
	for (size_t i = 0; i < 16; i++)
		w[i] = load32(block + 4 * i);
	for (size_t i = 16; i < ROUNDS; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[i - 7] +
		       (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
	}
}

static void compress(uint32_t state[static 8], const uint8_t *block)
{
	uint32_t w[ROUNDS], v[8];

	schedule(block, w);
	memcpy(v, state, sizeof(v));
	for (size_t i = 0; i < ROUNDS; i++) {
		uint32_t e = v[4], a = v[0];
		uint32_t t1 = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
			      ((e & v[5]) ^ (~e & v[6])) + round_constant[i] + w[i];
		uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
			      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (size_t i = 0; i < 8; i++)
		state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
	*s = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
					 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_add(struct sha256 *s, struct bytes piece)
{
	while (piece.len > 0) {
		size_t used = s->total % SHA256_BLOCK, room = SHA256_BLOCK - used;
		struct bytes now = bytes_head(piece, room);

		memcpy(s->block + used, now.ptr, now.len);
		s->total += now.len;
		if (now.len == room)
			compress(s->state, s->block);
		piece = bytes_tail(piece, now.len);
	}
}

void sha256_end(struct sha256 *s, uint8_t ret[static SHA256_SIZE])
{
	static const uint8_t padding[SHA256_BLOCK] = { 0x80 };
	uint64_t bits = s->total * 8;
	size_t used = s->total % SHA256_BLOCK;
	size_t n = used < LENGTH_AT ? LENGTH_AT - used : SHA256_BLOCK + LENGTH_AT - used;
	uint8_t length[8];

	store32(length, (uint32_t)(bits >> 32));
	store32(length + 4, (uint32_t)bits);
	sha256_add(s, (struct bytes){ padding, n });
	sha256_add(s, (struct bytes){ length, sizeof(length) });
	for (size_t i = 0; i < 8; i++)
		store32(ret + 4 * i, s->state[i]);
}

void sha256_of(struct bytes all, uint8_t ret[static SHA256_SIZE])
{
	struct sha256 s;

	sha256_init(&s);
	sha256_add(&s, all);
	sha256_end(&s, ret);
}

void sha256_hex_of(struct bytes all, char ret[static SHA256_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t sum[SHA256_SIZE];

	sha256_of(all, sum);
	for (size_t i = 0; i < SHA256_SIZE; i++) {
		ret[2 * i] = digits[sum[i] >> 4];
		ret[2 * i + 1] = digits[sum[i] & 15];
	}
	ret[SHA256_HEX] = '\0';
}
