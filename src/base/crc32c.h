/* crc32c.h - CRC-32C (Castagnoli): finds damage, not malice.
 *
 * Begin with 0 and pass each result on: crc32c(crc32c(0, a), b) is the checksum of a followed by b.
 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"

/* With the processor's own instruction where it has one. */
uint32_t crc32c(uint32_t crc, struct bytes b);

/* As if `n` zero bytes followed, in the time of log n: a hole in a file costs nothing. */
uint32_t crc32c_zeros(uint32_t crc, uint64_t n);

/* The two ways, for tests to compare. The fast one only where crc32c_has_fast(). */
uint32_t crc32c_slow(uint32_t crc, struct bytes b);
uint32_t crc32c_fast(uint32_t crc, struct bytes b);
bool crc32c_has_fast(void);
