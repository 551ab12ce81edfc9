/* bytes.h - borrowed bytes and owned bytes are different types.
 *
 * struct bytes  borrows: two words, passed by value, never freed.
 * struct buf    owns: grows up to `max` chosen at birth, then refuses.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"

struct bytes {
	const uint8_t *ptr;
	size_t len;
};

struct buf {
	uint8_t *ptr;
	size_t len, cap, max;
	bool secret; /* wiped when it is done, and where it was when it grows */
};

#define BYTES_LIT(s)  ((struct bytes){ (const uint8_t *)(s), sizeof(s) - 1 })
#define BUF_MAX(n)    ((struct buf){ .max = (n) })
#define BUF_SECRET(n) ((struct buf){ .max = (n), .secret = true })
#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))

static inline uint8_t byte_lower(uint8_t c) /* ASCII only */
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

static inline struct bytes bytes_head(struct bytes b, size_t n)
{
	return (struct bytes){ b.ptr, n < b.len ? n : b.len };
}

static inline struct bytes bytes_tail(struct bytes b, size_t skip)
{
	if (skip >= b.len)
		return (struct bytes){ 0 };
	return (struct bytes){ b.ptr + skip, b.len - skip };
}

/* Borrows a C string, without its NUL. */
static inline struct bytes bytes_str(const char *s)
{
	return (struct bytes){ (const uint8_t *)s, strlen(s) };
}

static inline bool bytes_eq(struct bytes a, struct bytes b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool bytes_eq_nocase(struct bytes a, struct bytes b); /* ASCII only */
bool bytes_eq_secret(struct bytes a, struct bytes b); /* how long it takes tells the lengths only */
bool bytes_starts(struct bytes b, struct bytes prefix);

/* Take the bytes before `sep` off the front of *in, and the separator with them.
 * False, and nothing taken, when `sep` does not occur. */
bool bytes_cut(struct bytes *in, uint8_t sep, struct bytes *ret);
/* The same, but what is left without one is the last piece. False: nothing is left. */
bool bytes_next(struct bytes *in, uint8_t sep, struct bytes *ret);
struct bytes bytes_trim(struct bytes b); /* spaces and tabs, both ends */

/* All of `b` as a decimal number, nothing else around it. */
bool bytes_to_u64(struct bytes b, uint64_t *ret);

/* Copy into a C string. False when it does not fit or holds a NUL. */
bool bytes_to_str(struct bytes b, char *ret, size_t size);

static inline struct bytes buf_view(const struct buf *b)
{
	return (struct bytes){ b->ptr, b->len };
}

/* Room for `n` more bytes at the end, to be filled by the caller and then claimed. */
int buf_reserve(struct buf *b, size_t n, uint8_t **ret, struct err *err) NODISCARD;
void buf_claim(struct buf *b, size_t n);
int buf_add(struct buf *b, struct bytes add, struct err *err) NODISCARD;
int buf_add_u64(struct buf *b, uint64_t n, struct err *err) NODISCARD; /* in decimal */
int buf_printf(struct buf *b, struct err *err, const char *fmt, ...) PRINTF(3, 4) NODISCARD;
void buf_drop(struct buf *b, size_t n); /* from the front */
void buf_clear(struct buf *b);          /* empty, the memory kept */
void buf_done(struct buf *b);
