/* proxy_v2.c - see proxy_v2.h. */
#include "wire/proxy_v2.h"

enum {
	VERSION = 2,
	COMMAND_LOCAL = 0,
	COMMAND_PROXY = 1,
	KIND_UNSPECIFIED = 0x00,
	KIND_TCP4 = 0x11,
	KIND_TCP6 = 0x21,
	KIND_UNIX = 0x31,
	TCP4_SIZE = 2 * 4 + 2 * 2, /* both addresses, then both ports */
	TCP6_SIZE = 2 * 16 + 2 * 2,
	UNIX_SIZE = 2 * 108,
	MORE_HEAD = 3, /* what is said besides: its type, its length in two octets */
	MORE_TLS = 0x20,
	MORE_TLS_MIN = 5,
	TLS_SPOKEN = 0x01,
};

static const uint8_t signature[12] = { '\r', '\n', '\r', '\n', 0,   '\r',
				       '\n', 'Q',  'U',  'I',  'T', '\n' };

static size_t number16(const uint8_t *at)
{
	return (size_t)at[0] << 8 | at[1];
}

static int refuse(struct err *err, const char *why)
{
	return err_set(err, ERR_INVALID, 0, "%s", why);
}

static int check_signature(struct bytes in, struct err *err)
{
	struct bytes want = { signature, sizeof(signature) };

	if (bytes_eq(bytes_head(in, want.len), bytes_head(want, in.len)))
		return 0;
	if (bytes_starts(in, BYTES_LIT("PROXY")))
		return refuse(err, "version 1 of the PROXY protocol, which is text: have the proxy "
				   "send version 2");
	return refuse(err, "no PROXY header");
}

/* As far as they have arrived: version and command, then the kind of the addresses. */
static int check_begin(struct bytes in, struct err *err)
{
	if (check_signature(in, err) < 0)
		return -1;
	if (in.len > 12 && in.ptr[12] >> 4 != VERSION)
		return refuse(err, "a PROXY header of an unknown version");
	if (in.len > 12 && (in.ptr[12] & 15) > COMMAND_PROXY)
		return refuse(err, "a PROXY header with an unknown command");
	if (in.len >= PROXY_V2_HEAD && PROXY_V2_HEAD + number16(in.ptr + 14) > PROXY_V2_MAX)
		return refuse(err, "a PROXY header that is too long");
	return 0;
}

/* The addresses are taken off `in`. */
static int read_client(uint8_t kind, struct bytes *in, struct proxy_v2 *ret, struct err *err)
{
	size_t size = kind == KIND_TCP4 ? TCP4_SIZE : kind == KIND_TCP6 ? TCP6_SIZE : UNIX_SIZE;

	if (kind != KIND_TCP4 && kind != KIND_TCP6 && kind != KIND_UNIX)
		return refuse(err, "a PROXY header for something else than a stream");
	if (in->len < size)
		return refuse(err, "a PROXY header that is shorter than its addresses");
	ret->has_client = kind != KIND_UNIX;
	if (kind == KIND_TCP4)
		ip_of_v4(in->ptr, &ret->client);
	else if (kind == KIND_TCP6)
		memcpy(ret->client.at, in->ptr, IP_SIZE);
	if (ret->has_client)
		ret->port = (uint16_t)number16(in->ptr + size - 4);
	*in = bytes_tail(*in, size);
	return 0;
}

static int read_more(struct bytes in, struct proxy_v2 *ret, struct err *err)
{
	while (in.len > 0) {
		size_t n = in.len >= MORE_HEAD ? number16(in.ptr + 1) : 0;

		if (in.len < MORE_HEAD + n)
			return refuse(err, "a PROXY header with a part that is cut off");
		if (in.ptr[0] == MORE_TLS && n < MORE_TLS_MIN)
			return refuse(err, "a PROXY header with a broken part about TLS");
		if (in.ptr[0] == MORE_TLS)
			ret->tls = in.ptr[MORE_HEAD] & TLS_SPOKEN;
		in = bytes_tail(in, MORE_HEAD + n);
	}
	return 0;
}

static int read_whole(struct bytes in, struct proxy_v2 *ret, struct err *err)
{
	struct bytes rest = bytes_tail(in, PROXY_V2_HEAD);

	*ret = (struct proxy_v2){ 0 };
	if ((in.ptr[12] & 15) == COMMAND_LOCAL) /* whatever else is in it says nothing */
		return 0;
	if (in.ptr[13] != KIND_UNSPECIFIED && read_client(in.ptr[13], &rest, ret, err) < 0)
		return -1;
	if (in.ptr[13] == KIND_UNSPECIFIED) /* its addresses have no known size */
		return 0;
	return read_more(rest, ret, err);
}

enum decode proxy_v2_read(struct bytes so_far, struct proxy_v2 *ret, size_t *ret_n, struct err *err)
{
	size_t n = PROXY_V2_HEAD;

	if (check_begin(so_far, err) < 0)
		return DECODE_BAD;
	if (so_far.len >= PROXY_V2_HEAD)
		n += number16(so_far.ptr + 14);
	if (so_far.len < n) {
		*ret_n = n - so_far.len;
		return DECODE_MORE;
	}
	*ret_n = n;
	return read_whole(bytes_head(so_far, n), ret, err) < 0 ? DECODE_BAD : DECODE_OK;
}
