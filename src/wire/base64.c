/* base64.c - RFC 4648, four characters for three bytes. */
#include "wire/base64.h"

#include <endian.h>

#define EACH 0x0101010101010101u /* of the eight bytes of a number */

static const char alphabet[64] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The last one or two bytes. */
static void encode_rest(struct bytes in, uint8_t out[static 4])
{
	uint32_t v = (uint32_t)in.ptr[0] << 16;

	if (in.len > 1)
		v |= (uint32_t)in.ptr[1] << 8;
	out[0] = (uint8_t)alphabet[v >> 18];
	out[1] = (uint8_t)alphabet[v >> 12 & 63];
	out[2] = in.len > 1 ? (uint8_t)alphabet[v >> 6 & 63] : '=';
	out[3] = '=';
}

/* One where a lane of eight bits is at least n, of at most 63. */
static uint64_t at_least(uint64_t lanes, uint64_t n)
{
	return (lanes + EACH * (128 - n)) >> 7 & EACH;
}

/* Six bytes to eight characters, all at once: each character in eight bits of a number. */
static uint64_t encode_six(uint64_t v)
{
	v = (v & 0x000000ffffff) | (v & 0xffffff000000) << 8;
	v = (v & 0x00000fff00000fff) | (v & 0x00fff00000fff000) << 4;
	v = (v & 0x003f003f003f003f) | (v & 0x0fc00fc00fc00fc0) << 2;
	/* from one run of the alphabet to the next: A-Z, a-z, 0-9, +, / */
	return v + EACH * 'A' + at_least(v, 26) * ('a' - 'A' - 26) + at_least(v, 63) * 3 -
	       at_least(v, 52) * ('a' + 26 - '0') - at_least(v, 62) * ('9' + 1 - '+');
}

/* All that a process says goes through here, in a guest that may be emulated, where touching memory
 * is what costs. Returns what is left, fewer than eight bytes. */
static struct bytes encode_sixes(struct bytes in, uint8_t **out)
{
	while (in.len >= sizeof(uint64_t)) {
		uint64_t v;

		memcpy(&v, in.ptr, sizeof(v));
		v = htobe64(encode_six(be64toh(v) >> 16));
		memcpy(*out, &v, sizeof(v));
		*out += sizeof(v);
		in.ptr += 6;
		in.len -= 6;
	}
	return in;
}

/* Returns what is left, fewer than three bytes. */
static struct bytes encode_groups(struct bytes in, uint8_t *out)
{
	for (in = encode_sixes(in, &out); in.len >= 3; in = bytes_tail(in, 3), out += 4) {
		uint32_t v = (uint32_t)in.ptr[0] << 16 | (uint32_t)in.ptr[1] << 8 | in.ptr[2];

		out[0] = (uint8_t)alphabet[v >> 18];
		out[1] = (uint8_t)alphabet[v >> 12 & 63];
		out[2] = (uint8_t)alphabet[v >> 6 & 63];
		out[3] = (uint8_t)alphabet[v & 63];
	}
	return in;
}

int base64_encode(struct bytes in, struct buf *out, struct err *err)
{
	size_t groups = in.len / 3 + (in.len % 3 > 0), size;
	uint8_t *room;

	if (__builtin_mul_overflow(groups, (size_t)4, &size))
		return err_set(err, ERR_EXHAUSTED, 0, "%zu bytes do not fit base64", in.len);
	if (buf_reserve(out, size, &room, err) < 0)
		return err_wrap(err, "encode base64");
	in = encode_groups(in, room);
	if (in.len > 0)
		encode_rest(in, &room[size - 4]);
	buf_claim(out, size);
	return 0;
}

enum { URL_SAFE = 1, STANDARD = 2 };

/* 0 to 63, or -1. *seen collects which of the two alphabets the text has shown to be. */
static int value_of(uint8_t c, unsigned int *seen)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+' || c == '/')
		*seen |= STANDARD;
	if (c == '-' || c == '_')
		*seen |= URL_SAFE;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

/* Two to four characters. -1: not of the alphabet, or bits left over that are not zero. */
static int decode_group(struct bytes in, uint8_t *out, unsigned int *seen)
{
	uint32_t v = 0;

	for (size_t i = 0; i < 4; i++) {
		int six = i < in.len ? value_of(in.ptr[i], seen) : 0;

		if (six < 0)
			return -1;
		v = v << 6 | (uint32_t)six;
	}
	if ((in.len == 2 && (v & 0xffff) != 0) || (in.len == 3 && (v & 0xff) != 0))
		return -1;
	out[0] = (uint8_t)(v >> 16);
	if (in.len > 2)
		out[1] = (uint8_t)(v >> 8);
	if (in.len > 3)
		out[2] = (uint8_t)v;
	return 0;
}

/* Without its padding; false when the padding is not what the length asks for. */
static bool strip_padding(struct bytes *in)
{
	size_t pad = 0;

	while (pad < 2 && pad < in->len && in->ptr[in->len - 1 - pad] == '=')
		pad++;
	if (pad > 0 && in->len % 4 != 0)
		return false;
	in->len -= pad;
	return in->len % 4 != 1;
}

int base64_decode(struct bytes in, struct buf *out, struct err *err)
{
	unsigned int seen = 0;
	uint8_t *room;
	size_t size;

	if (!strip_padding(&in))
		return err_set(err, ERR_INVALID, 0, "base64 of an impossible length");
	size = in.len / 4 * 3 + (in.len % 4 ? in.len % 4 - 1 : 0);
	if (buf_reserve(out, size, &room, err) < 0)
		return err_wrap(err, "decode base64");
	for (size_t i = 0; 4 * i < in.len; i++)
		if (decode_group(bytes_head(bytes_tail(in, 4 * i), 4), &room[3 * i], &seen) < 0)
			return err_set(err, ERR_INVALID, 0, "malformed base64 near byte %zu",
				       4 * i);
	if (seen == (URL_SAFE | STANDARD))
		return err_set(err, ERR_INVALID, 0, "base64 in two alphabets at once");
	buf_claim(out, size);
	return 0;
}
