/* json_mend.c - see json_mend.h. */
#include "interp/json_mend.h"

enum { ESCAPE_LEN = 6 }; /* \uXXXX */

#define INSTEAD         BYTES_LIT("\xef\xbf\xbd")
#define ESCAPED_INSTEAD BYTES_LIT("\\ufffd")

/* How many bytes the character at the front has, as RFC 3629 has it; 0: it is none. */
static size_t utf8_len(struct bytes in)
{
	uint8_t c = in.ptr[0], low = 0x80, high = 0xbf;
	size_t n = c < 0x80 ? 1 : c >= 0xc2 && c <= 0xdf ? 2 : c >= 0xf0 ? 4 : 3;

	if (n == 1)
		return 1;
	if (c < 0xc2 || c > 0xf4 || in.len < n)
		return 0;
	if (c == 0xe0)
		low = 0xa0; /* shorter forms are none */
	else if (c == 0xf0)
		low = 0x90;
	else if (c == 0xed)
		high = 0x9f; /* surrogates */
	else if (c == 0xf4)
		high = 0x8f;
	if (in.ptr[1] < low || in.ptr[1] > high)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (in.ptr[i] < 0x80 || in.ptr[i] > 0xbf)
			return 0;
	return n;
}

/* The unit of an escape at the front; false: there is none. */
static bool escaped_unit(struct bytes in, unsigned int *ret)
{
	unsigned int unit = 0;

	if (in.len < ESCAPE_LEN || in.ptr[0] != '\\' || in.ptr[1] != 'u')
		return false;
	for (size_t i = 2; i < ESCAPE_LEN; i++) {
		uint8_t c = byte_lower(in.ptr[i]);

		if (c >= '0' && c <= '9')
			unit = 16 * unit + (unsigned int)(c - '0');
		else if (c >= 'a' && c <= 'f')
			unit = 16 * unit + (unsigned int)(c - 'a' + 10);
		else
			return false;
	}
	*ret = unit;
	return true;
}

/* At a backslash: how much stays as it is; 0: an escape is to be replaced. */
static size_t escape_len(struct bytes in)
{
	unsigned int first, second;

	if (!escaped_unit(in, &first))
		return in.len < 2 || in.ptr[1] > 0x7f ? 1 : 2;
	if (first >= 0xd800 && first <= 0xdbff &&
	    escaped_unit(bytes_tail(in, ESCAPE_LEN), &second) && second >= 0xdc00 &&
	    second <= 0xdfff)
		return (size_t)2 * ESCAPE_LEN;
	return first == 0 || (first >= 0xd800 && first <= 0xdfff) ? 0 : ESCAPE_LEN;
}

int json_mend(struct bytes in, struct buf *out, struct err *err)
{
	size_t good = 0; /* bytes at the front that stay as they are */

	while (good < in.len) {
		struct bytes rest = bytes_tail(in, good);
		bool escape = rest.ptr[0] == '\\';
		size_t n = escape ? escape_len(rest) : utf8_len(rest);

		good += n;
		if (n > 0)
			continue;
		if (buf_add(out, bytes_head(in, good), err) < 0 ||
		    buf_add(out, escape ? ESCAPED_INSTEAD : INSTEAD, err) < 0)
			return -1;
		in = bytes_tail(rest, escape ? ESCAPE_LEN : 1);
		good = 0;
	}
	return buf_add(out, in, err);
}
