/* hash.h - FNV-1a, for tables of names that nobody can choose at will, or that are bounded. */
#pragma once

#include <stdint.h>

#define HASH_START 2166136261u

/* Of a text behind what was hashed before: begin with HASH_START. */
static inline uint32_t hash_text(uint32_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * 16777619u;
	return h;
}
