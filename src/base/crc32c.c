/* crc32c.c - a remainder modulo a polynomial over two values, bits reflected as usual. */
#include "base/crc32c.h"

enum { POLYNOMIAL = 0x82F63B78u };
enum { STRETCH = 4096 }; /* a power of two */

/* What four zero bits do to the low four bits of the remainder. */
static const uint32_t nibble[16] = {
	0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
	0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
	0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

uint32_t crc32c_slow(uint32_t crc, struct bytes b)
{
	uint32_t r = ~crc;

	for (size_t i = 0; i < b.len; i++) {
		r ^= b.ptr[i];
		r = (r >> 4) ^ nibble[r & 15];
		r = (r >> 4) ^ nibble[r & 15];
	}
	return ~r;
}

/* a * b modulo the polynomial; the highest bit is the constant term. */
static uint32_t product(uint32_t a, uint32_t b)
{
	uint32_t r = 0;

	for (uint32_t bit = 1u << 31; bit; bit >>= 1) {
		if (a & bit)
			r ^= b;
		b = (b >> 1) ^ (b & 1 ? POLYNOMIAL : 0);
	}
	return r;
}

#if defined(__x86_64__)

bool crc32c_has_fast(void)
{
	return __builtin_cpu_supports("sse4.2");
}

static uint64_t word_at(const uint8_t *p)
{
	uint64_t word;

	memcpy(&word, p, sizeof(word));
	return word;
}

/* The instruction takes three cycles, and a new one can begin in each: three stretches side by
 * side, each as if it came first, put together by what the bytes after it do to a remainder. */
__attribute__((target("sse4.2"))) static uint64_t stretches(uint64_t r, struct bytes *b)
{
	uint32_t power = 1u << 23; /* x^8 */

	if (b->len < 3 * STRETCH)
		return r;
	for (size_t n = 1; n < STRETCH; n *= 2)
		power = product(power, power);
	while (b->len >= 3 * STRETCH) {
		const uint8_t *p = b->ptr;
		uint64_t second = 0, third = 0;

		for (size_t i = 0; i < STRETCH; i += sizeof(uint64_t)) {
			r = __builtin_ia32_crc32di(r, word_at(p + i));
			second = __builtin_ia32_crc32di(second, word_at(p + STRETCH + i));
			third = __builtin_ia32_crc32di(third, word_at(p + 2 * STRETCH + i));
		}
		r = product(power, product(power, (uint32_t)r) ^ (uint32_t)second) ^ third;
		*b = bytes_tail(*b, 3 * STRETCH);
	}
	return r;
}

__attribute__((target("sse4.2"))) uint32_t crc32c_fast(uint32_t crc, struct bytes b)
{
	uint64_t r = stretches(~crc, &b);
	size_t i = 0;

	for (; b.len - i >= sizeof(uint64_t); i += sizeof(uint64_t))
		r = __builtin_ia32_crc32di(r, word_at(b.ptr + i));
	for (; i < b.len; i++)
		r = __builtin_ia32_crc32qi((uint32_t)r, b.ptr[i]);
	return ~(uint32_t)r;
}

#else

bool crc32c_has_fast(void)
{
	return false;
}

uint32_t crc32c_fast(uint32_t crc, struct bytes b)
{
	(void)crc, (void)b;
	abort(); /* no such instruction */
}

#endif

uint32_t crc32c(uint32_t crc, struct bytes b)
{
	return crc32c_has_fast() ? crc32c_fast(crc, b) : crc32c_slow(crc, b);
}

uint32_t crc32c_zeros(uint32_t crc, uint64_t n)
{
	uint32_t power = 1u << 23; /* x^8: what one zero byte multiplies by */
	uint32_t r = ~crc;

	for (; n; n >>= 1) {
		if (n & 1)
			r = product(power, r);
		power = product(power, power);
	}
	return ~r;
}
