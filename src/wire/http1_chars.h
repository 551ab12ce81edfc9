/* http1_chars.h - which bytes may stand where in HTTP/1; inside wire/ only. */
#pragma once

#include "base/bytes.h"

static inline bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_alnum(uint8_t c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static inline bool is_tchar(uint8_t c) /* of a method or a field name */
{
	static const char marks[] = "!#$%&'*+-.^_`|~";

	return is_alnum(c) || memchr(marks, c, sizeof(marks) - 1);
}

static inline bool is_text(uint8_t c) /* of a field value or a reason; 0x80 and up pass */
{
	return c == '\t' || (c >= ' ' && c != 127);
}

static inline bool is_target(uint8_t c) /* a fragment never travels */
{
	return c > ' ' && c < 127 && c != '#';
}

static inline bool is_space(uint8_t c)
{
	return c == ' ';
}

static inline int hex_value(uint8_t c) /* -1: not a digit */
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The length of http:// or https:// at the front of an absolute target; 0: neither. */
static inline size_t scheme_len(struct bytes target)
{
	if (bytes_eq_nocase(bytes_head(target, 7), BYTES_LIT("http://")))
		return 7;
	return bytes_eq_nocase(bytes_head(target, 8), BYTES_LIT("https://")) ? 8 : 0;
}

/* How far the authority reaches that begins at `from`. */
static inline size_t authority_end(struct bytes target, size_t from)
{
	while (from < target.len && target.ptr[from] != '/' && target.ptr[from] != '?')
		from++;
	return from;
}

static inline bool bytes_all(struct bytes b, bool (*ok)(uint8_t))
{
	for (size_t i = 0; i < b.len; i++)
		if (!ok(b.ptr[i]))
			return false;
	return true;
}
