/* peek.c - see peek.h. */
#include "egress/peek.h"

#include "http/http_guard.h"
#include "wire/http1_host.h"

enum {
	TLS_RECORD_FIRST = 20, /* change of cipher, alert, handshake, data, heartbeat */
	TLS_RECORD_LAST = 24,
	EMPTY_LINES_MAX = 64,
	METHOD_LIKE = 3, /* letters: no method is shorter */
	FIRST_LINE_MAX = HTTP1_TARGET_MAX + HTTP1_METHOD_MAX + 16,
};

/* What a method may be made of (RFC 9110). */
static bool is_token(uint8_t c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

/* What some server takes for a blank: all that a libc, or Python, does. */
static bool is_blank(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n') || (c >= 0x1c && c <= 0x1f) ||
	       c == 0x85 || c == 0xa0;
}

static bool is_control(uint8_t c)
{
	return (c < ' ' || c == 127) && !is_blank(c);
}

static struct bytes next_word(struct bytes *line)
{
	struct bytes word;
	size_t n = 0;

	while (line->len > 0 && is_blank(line->ptr[0]))
		*line = bytes_tail(*line, 1);
	while (n < line->len && !is_blank(line->ptr[n]))
		n++;
	word = bytes_head(*line, n);
	*line = bytes_tail(*line, n);
	return word;
}

/* A word behind the first that begins so. */
static bool has_word(struct bytes line, struct bytes start)
{
	for (size_t i = 1; i + start.len <= line.len; i++)
		if (is_blank(line.ptr[i - 1]) &&
		    bytes_eq_nocase(bytes_head(bytes_tail(line, i), start.len), start))
			return true;
	return false;
}

/* The version of HTTP, however a server may be prepared to read it; a target that names its host,
 * which needs none (HTTP/0.9); or a version that servers of HTTP take as well. */
static bool is_request(struct bytes line)
{
	struct bytes rest = line, target;

	(void)next_word(&rest);
	target = next_word(&rest);
	if (has_word(line, BYTES_LIT("HTTP/")))
		return true;
	if (target.len > 0 && target.ptr[0] == '/')
		return has_word(rest, BYTES_LIT("RTSP/")) || has_word(rest, BYTES_LIT("ICE/"));
	return target.len > 0 && memmem(target.ptr, target.len, "://", 3) &&
	       next_word(&rest).len == 0;
}

static size_t first_control(struct bytes line)
{
	size_t n = 0;

	while (n < line.len && !is_control(line.ptr[n]))
		n++;
	return n;
}

/* A control character comes behind this. Some servers take any byte in a target, so what has the
 * method of a request, or a version, is not taken for another protocol, though no client would send
 * that. What is behind does not count: it may not have arrived. */
static enum peek_kind before_control(struct bytes line, size_t method)
{
	size_t letters = 0;

	for (size_t i = 0; i < method; i++) {
		uint8_t c = line.ptr[i] | 0x20;

		letters += c >= 'a' && c <= 'z';
	}
	if ((method >= METHOD_LIKE && letters == method) || has_word(line, BYTES_LIT("HTTP/")))
		return PEEK_BROKEN;
	return PEEK_OTHER;
}

/* METHOD target HTTP/x: a first line that some server would read as a request. Whether it is one
 * is decided with its whole head, which is read strictly. */
static enum peek_kind first_line(struct bytes in)
{
	struct bytes seen = bytes_head(in, FIRST_LINE_MAX), line;
	const uint8_t *end = memchr(seen.ptr, '\n', seen.len);
	size_t method = 0, control;

	line = bytes_head(seen, end ? (size_t)(end - seen.ptr) : seen.len);
	while (method < line.len && is_token(line.ptr[method]))
		method++;
	if (method < line.len && (method == 0 || !is_blank(line.ptr[method])))
		return PEEK_OTHER;
	control = first_control(line);
	if (control < line.len)
		return before_control(bytes_head(line, control), method);
	if (!end)
		return in.len >= FIRST_LINE_MAX ? PEEK_BROKEN : PEEK_MORE;
	return is_request(line) ? PEEK_HTTP : PEEK_OTHER;
}

/* Servers pass over empty lines and blanks before a request, and records before a greeting. What is
 * said behind them would not be looked at. */
static enum peek_kind behind_something(struct bytes in)
{
	enum peek_kind line;
	size_t n = 0;

	if (in.ptr[0] >= TLS_RECORD_FIRST && in.ptr[0] <= TLS_RECORD_LAST)
		return in.len < 2 ? PEEK_MORE : in.ptr[1] == 3 ? PEEK_BROKEN : PEEK_OTHER;
	while (n < in.len && (in.ptr[n] == '\n' || is_blank(in.ptr[n])))
		n++;
	if (n == 0)
		return PEEK_OTHER;
	if (n >= EMPTY_LINES_MAX)
		return PEEK_BROKEN;
	if (n == in.len)
		return PEEK_MORE;
	line = first_line(bytes_tail(in, n));
	return line == PEEK_HTTP ? PEEK_BROKEN : line;
}

/* Would first_line(), or behind_something(), say anything but PEEK_MORE? */
static bool line_settled(struct bytes in, struct peek_place *p)
{
	if (in.ptr[0] >= TLS_RECORD_FIRST && in.ptr[0] <= TLS_RECORD_LAST)
		return in.len >= 2;
	while (p->begin == p->scanned && p->begin < in.len &&
	       (in.ptr[p->begin] == '\n' || is_blank(in.ptr[p->begin])))
		p->scanned = ++p->begin;
	if (p->begin >= EMPTY_LINES_MAX)
		return true;
	for (; p->scanned < in.len; p->scanned++) {
		uint8_t c = in.ptr[p->scanned];

		if (c == '\n' || (p->method_over && is_control(c)))
			return true;
		if (!p->method_over && !is_token(c) && !is_blank(c))
			return true;
		p->method_over |= is_blank(c);
	}
	return in.len - p->begin >= FIRST_LINE_MAX;
}

static enum peek_kind read_line(struct bytes in)
{
	enum peek_kind line = first_line(in);

	return line == PEEK_OTHER ? behind_something(in) : line;
}

static enum peek_kind read_head(struct bytes head, struct peek *ret)
{
	char host[DOMAIN_SIZE];
	struct http1_head h;
	struct err err;
	uint16_t port;
	bool is_name;

	if (http1_parse_request(head, &h, &err) < 0 || http1_check_host(&h, &err) < 0)
		return PEEK_BROKEN;
	if (!http_guard_host(&h, host, &is_name, &port))
		return PEEK_BROKEN;
	ret->port = port;
	if (is_name)
		memcpy(ret->name, host, sizeof(ret->name));
	return PEEK_HTTP;
}

static enum peek_kind read_request(struct bytes in, struct peek_place *p, struct peek *ret)
{
	struct err err;
	size_t used;

	switch (http1_head_end(in, &p->scanned, &used, &err)) {
	case DECODE_MORE:
		return in.len >= PEEK_MAX ? PEEK_BROKEN : PEEK_MORE;
	case DECODE_OK:
		return read_head(bytes_head(in, used), ret);
	case DECODE_BAD:
	default:
		return PEEK_BROKEN;
	}
}

/* PEEK_OTHER: it is none. */
static enum peek_kind read_greeting(struct bytes so_far, struct peek *ret)
{
	struct tls_hello hello;

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
	return PEEK_OTHER;
}

enum peek_kind peek_read(struct bytes so_far, struct peek_place *p, struct peek *ret)
{
	enum peek_kind kind;

	*ret = (struct peek){ 0 };
	if (so_far.len == 0)
		return PEEK_MORE;
	if (p->stage == PEEK_GREETING) {
		kind = tls_hello_settled(so_far, &p->hello) ? read_greeting(so_far, ret)
							    : PEEK_MORE;
		if (kind != PEEK_OTHER)
			return kind;
		p->stage = PEEK_LINE;
	}
	if (p->stage == PEEK_LINE) {
		kind = line_settled(so_far, p) ? read_line(so_far) : PEEK_MORE;
		if (kind != PEEK_HTTP)
			return kind;
		p->stage = PEEK_HEAD;
		p->scanned = 0;
	}
	return read_request(so_far, p, ret);
}
