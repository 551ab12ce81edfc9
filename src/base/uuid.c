/* uuid.c - see uuid.h. */
#include "base/uuid.h"

#include <stdio.h>

#include "base/random.h"

/* Random, but for six bits that say so. */
void uuid_make(char ret[static UUID_SIZE])
{
	static const char variant[] = "89ab";
	char hex[33];

	random_hex(hex, 16);
	hex[12] = '4';
	hex[16] = variant[(unsigned char)hex[16] % 4];
	snprintf(ret, UUID_SIZE, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12, hex + 16,
		 hex + 20);
}
