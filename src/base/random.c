/* random.c - getrandom(2) without its corner cases. */
/* #syscalls: getrandom */
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

void random_fill(void *into, size_t n)
{
	uint8_t *at = into;

	while (n > 0) {
		ssize_t got = getrandom(at, n, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			abort();
		at += got;
		n -= (size_t)got;
	}
}

void random_name(char *ret, size_t len)
{
	static const char alphabet[36] = "0123456789abcdefghijklmnopqrstuvwxyz";
	size_t i = 0;

	while (i < len) {
		uint8_t b;

		random_fill(&b, 1);
		if (b < 252) /* 7 * 36: the rest would favour the first letters */
			ret[i++] = alphabet[b % 36];
	}
	ret[len] = '\0';
}

void random_hex(char *ret, size_t n)
{
	static const char digits[16] = "0123456789abcdef";
	uint8_t raw[64];

	assert(n <= sizeof(raw));
	random_fill(raw, n);
	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[raw[i] >> 4];
		ret[2 * i + 1] = digits[raw[i] & 15];
	}
	ret[2 * n] = '\0';
}
