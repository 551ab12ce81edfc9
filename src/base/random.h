/* random.h - bytes nobody can guess, and names made of them. */
#pragma once

#include <stddef.h>

/* Fills all of it or aborts: there is no safe way to go on without randomness. */
void random_fill(void *into, size_t n);

/* `len` characters of [0-9a-z], 5.17 bits each, and a NUL: ret holds len + 1. */
void random_name(char *ret, size_t len);

/* 2 * n lower-case hexadecimal digits and a NUL: ret holds 2 * n + 1. n is at most 64. */
void random_hex(char *ret, size_t n);
