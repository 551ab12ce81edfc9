/* peek.c - see peek.h. */
#include "egress/peek.h"

#include "http/http_guard.h"
#include "wire/http1_host.h"

static bool is_token(uint8_t c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

/* METHOD target HTTP/1.x: a first line that a server of HTTP/1 would read as a request. What is so
 * long that no end of it is in sight is read as one, too: then its head decides. */
static enum peek_kind first_line(struct bytes in)
{
	const uint8_t *end = memchr(in.ptr, '\n', in.len);
	size_t line = end ? (size_t)(end - in.ptr) : in.len, method = 0;

	while (method < line && is_token(in.ptr[method]))
		method++;
	if (method > HTTP1_METHOD_MAX || (method < line && (method == 0 || in.ptr[method] != ' ')))
		return PEEK_OTHER;
	if (!end)
		return PEEK_MORE;
	if (line < method + 10 || memcmp(in.ptr + line - 9, "HTTP/1.", 7) != 0)
		return PEEK_OTHER;
	return PEEK_HTTP;
}

static enum peek_kind read_request(struct bytes in, struct peek *ret)
{
	char host[DOMAIN_SIZE];
	struct http1_head h;
	struct err err;
	size_t scanned = 0, used;
	bool is_name;

	switch (http1_head_end(in, &scanned, &used, &err)) {
	case DECODE_MORE:
		return in.len >= PEEK_MAX ? PEEK_BROKEN : PEEK_MORE;
	case DECODE_OK:
		break;
	case DECODE_BAD:
	default:
		return PEEK_BROKEN;
	}
	if (http1_parse_request(bytes_head(in, used), &h, &err) < 0 ||
	    http1_check_host(&h, &err) < 0)
		return PEEK_BROKEN;
	if (!http_guard_host(&h, host, &is_name, &ret->port))
		return PEEK_BROKEN;
	if (is_name)
		memcpy(ret->name, host, sizeof(ret->name));
	return PEEK_HTTP;
}

enum peek_kind peek_read(struct bytes so_far, struct peek *ret)
{
	struct tls_hello hello;
	enum peek_kind line;

	*ret = (struct peek){ 0 };
	if (so_far.len == 0)
		return PEEK_MORE;
	switch (tls_hello_read(so_far, &hello)) {
	case TLS_HELLO_MORE:
		return PEEK_MORE;
	case TLS_HELLO_WHOLE:
		memcpy(ret->name, hello.name, sizeof(ret->name));
		ret->hides = hello.encrypted;
		return PEEK_TLS;
	case TLS_HELLO_BROKEN:
		return PEEK_BROKEN;
	case TLS_HELLO_OTHER:
		break;
	}
	line = first_line(so_far);
	if (line == PEEK_MORE && so_far.len >= HTTP1_TARGET_MAX + HTTP1_METHOD_MAX + 16)
		return PEEK_BROKEN;
	return line == PEEK_HTTP ? read_request(so_far, ret) : line;
}
