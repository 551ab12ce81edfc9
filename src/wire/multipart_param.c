/* multipart_param.c - see multipart_param.h. */
#include "wire/multipart_param.h"

#include "wire/http1_chars.h"

struct bytes multipart_params(struct bytes value)
{
	const uint8_t *at = value.len > 0 ? memchr(value.ptr, ';', value.len) : NULL;

	return at ? bytes_tail(value, (size_t)(at - value.ptr)) : (struct bytes){ 0 };
}

static void skip_blanks(struct bytes *in)
{
	while (in->len > 0 && (in->ptr[0] == ' ' || in->ptr[0] == '\t'))
		*in = bytes_tail(*in, 1);
}

static struct bytes take_token(struct bytes *in)
{
	size_t n = 0;
	struct bytes token;

	while (n < in->len && is_tchar(in->ptr[n]))
		n++;
	token = bytes_head(*in, n);
	*in = bytes_tail(*in, n);
	return token;
}

static bool is_escape(struct bytes in)
{
	static const char marks[] = "()<>@,;:\\\"/[]?=";

	return in.len >= 2 && in.ptr[0] == '\\' && memchr(marks, in.ptr[1], sizeof(marks) - 1);
}

/* The text up to the closing quote, which must be there. */
static bool take_quoted(struct buf *home, struct bytes *in, struct bytes *ret)
{
	uint8_t *to = home->ptr + (in->ptr - home->ptr);
	size_t n = 0, at = 0;

	while (at < in->len && in->ptr[at] != '"') {
		if (is_escape(bytes_tail(*in, at)))
			at++;
		to[n++] = in->ptr[at++];
	}
	if (at == in->len)
		return false;
	*ret = (struct bytes){ to, n };
	*in = (struct bytes){ in->ptr + at + 1, in->len - at - 1 };
	return true;
}

static enum decode bad(struct err *err)
{
	err_set(err, ERR_INVALID, 0, "malformed parameter");
	return DECODE_BAD;
}

enum decode multipart_next_param(struct buf *home, struct bytes *rest, struct multipart_param *ret,
				 struct err *err)
{
	struct bytes in = *rest;

	skip_blanks(&in);
	if (in.len > 0 && in.ptr[0] != ';')
		return bad(err);
	in = bytes_tail(in, 1);
	skip_blanks(&in);
	if (in.len == 0)
		return DECODE_MORE;
	ret->name = take_token(&in);
	if (ret->name.len == 0 || in.len < 2 || in.ptr[0] != '=')
		return bad(err);
	in = bytes_tail(in, 1);
	if (in.ptr[0] == '"') {
		in = (struct bytes){ in.ptr + 1, in.len - 1 };
		if (!take_quoted(home, &in, &ret->value))
			return bad(err);
	} else {
		ret->value = take_token(&in);
		if (ret->value.len == 0)
			return bad(err);
	}
	*rest = in;
	return DECODE_OK;
}
