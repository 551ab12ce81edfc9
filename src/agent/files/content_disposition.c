/* content_disposition.c - see content_disposition.h. */
#include "agent/files/content_disposition.h"

static bool is_token(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       memchr("!#$%&'*+-.^_`|~", c, 15);
}

static bool is_attr(uint8_t c) /* may stand for itself in RFC 8187 */
{
	return is_token(c) && c != '*' && c != '\'' && c != '%';
}

static bool is_printable(uint8_t c)
{
	return c >= ' ' && c < 127;
}

static bool all(struct bytes b, bool (*ok)(uint8_t))
{
	for (size_t i = 0; i < b.len; i++)
		if (!ok(b.ptr[i]))
			return false;
	return b.len > 0;
}

static int put_quoted(struct buf *out, struct bytes name, struct err *err)
{
	for (size_t i = 0; i < name.len; i++) {
		bool escape = name.ptr[i] == '"' || name.ptr[i] == '\\';

		if (buf_printf(out, err, "%s%c", escape ? "\\" : "", name.ptr[i]) < 0)
			return -1;
	}
	return buf_add(out, BYTES_LIT("\""), err);
}

static int put_encoded(struct buf *out, struct bytes name, struct err *err)
{
	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = name.ptr[i];

		if (buf_printf(out, err, is_attr(c) ? "%c" : "%%%02X", c) < 0)
			return -1;
	}
	return 0;
}

int content_disposition_put(struct buf *out, struct bytes name, struct err *err)
{
	if (buf_add(out, BYTES_LIT("inline; filename"), err) < 0)
		return -1;
	if (all(name, is_token))
		return buf_add(out, BYTES_LIT("="), err) < 0 ? -1 : buf_add(out, name, err);
	if (all(name, is_printable))
		return buf_add(out, BYTES_LIT("=\""), err) < 0 ? -1 : put_quoted(out, name, err);
	return buf_add(out, BYTES_LIT("*=utf-8''"), err) < 0 ? -1 : put_encoded(out, name, err);
}
