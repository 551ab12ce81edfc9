/* tls_hello.c - see tls_hello.h. */
#include "wire/tls_hello.h"

enum {
	RECORD_HEADER = 5,
	RECORD_MAX = 16 * 1024,
	RECORD_HANDSHAKE = 22,
	MESSAGE_CLIENT_HELLO = 1,
	RANDOM = 32,
	SESSION_MAX = 32,
	EXTENSION_NAME = 0,
	EXTENSION_ALPN = 16,
	EXTENSION_ENCRYPTED = 0xfe0d,
	NAME_OF_HOST = 0,
};

/* --- numbers and vectors ------------------------------------------------------------------ */

static bool take(struct bytes *in, size_t n, struct bytes *ret)
{
	if (in->len < n)
		return false;
	*ret = bytes_head(*in, n);
	*in = bytes_tail(*in, n);
	return true;
}

static bool take_number(struct bytes *in, size_t octets, size_t *ret)
{
	struct bytes b;

	if (!take(in, octets, &b))
		return false;
	*ret = 0;
	for (size_t i = 0; i < octets; i++)
		*ret = *ret << 8 | b.ptr[i];
	return true;
}

/* A vector: its length in so many octets, then its content. */
static bool take_vector(struct bytes *in, size_t octets, struct bytes *ret)
{
	size_t n;

	return take_number(in, octets, &n) && take(in, n, ret);
}

/* --- extensions --------------------------------------------------------------------------- */

/* One name, of a host: what a client may send. */
static bool read_name(struct bytes in, struct tls_hello *ret)
{
	struct bytes list, name;
	size_t type;

	return take_vector(&in, 2, &list) && in.len == 0 && take_number(&list, 1, &type) &&
	       type == NAME_OF_HOST && take_vector(&list, 2, &name) && list.len == 0 &&
	       domain_normal(name, ret->name);
}

static bool read_alpn(struct bytes in, struct tls_hello *ret)
{
	struct bytes list, protocol;

	if (!take_vector(&in, 2, &list) || in.len > 0)
		return false;
	while (list.len > 0) {
		if (!take_vector(&list, 1, &protocol) || protocol.len == 0)
			return false;
		ret->http2 |= bytes_eq(protocol, BYTES_LIT("h2"));
	}
	return true;
}

static bool read_extension(size_t type, struct bytes body, struct tls_hello *ret)
{
	switch (type) {
	case EXTENSION_NAME:
		return ret->name[0] == '\0' && read_name(body, ret);
	case EXTENSION_ALPN:
		return read_alpn(body, ret);
	case EXTENSION_ENCRYPTED:
		ret->encrypted = true;
		return true;
	default:
		return true;
	}
}

static bool read_extensions(struct bytes in, struct tls_hello *ret)
{
	struct bytes list, body;
	size_t type;

	if (in.len == 0) /* TLS 1.2 may send none */
		return true;
	if (!take_vector(&in, 2, &list) || in.len > 0)
		return false;
	while (list.len > 0)
		if (!take_number(&list, 2, &type) || !take_vector(&list, 2, &body) ||
		    !read_extension(type, body, ret))
			return false;
	return true;
}

static bool read_message(struct bytes in, struct tls_hello *ret)
{
	struct bytes fixed, session, ciphers, compressions;

	*ret = (struct tls_hello){ 0 };
	if (!take(&in, 2 + RANDOM, &fixed) || fixed.ptr[0] != 3 || !take_vector(&in, 1, &session) ||
	    session.len > SESSION_MAX)
		return false;
	if (!take_vector(&in, 2, &ciphers) || ciphers.len == 0 || ciphers.len % 2 != 0 ||
	    !take_vector(&in, 1, &compressions) || compressions.len == 0)
		return false;
	return read_extensions(in, ret);
}

/* --- records ------------------------------------------------------------------------------ */

static size_t record_length(struct bytes header)
{
	return (size_t)header.ptr[3] << 8 | header.ptr[4];
}

static bool is_length(size_t n)
{
	return n > 0 && n <= RECORD_MAX;
}

/* As far as its header has arrived. */
static bool is_record(struct bytes in)
{
	return (in.len == 0 || in.ptr[0] == RECORD_HANDSHAKE) && (in.len < 2 || in.ptr[1] == 3);
}

/* Of the message that begins so, where it ends. */
static size_t message_end(const uint8_t begin[static TLS_HELLO_BEGIN])
{
	return TLS_HELLO_BEGIN + ((size_t)begin[1] << 16 | (size_t)begin[2] << 8 | begin[3]);
}

/* --- is it all there? --------------------------------------------------------------------- */

static bool message_settled(const struct tls_hello_place *p)
{
	size_t end;

	if (p->len > 0 && p->begin[0] != MESSAGE_CLIENT_HELLO)
		return true;
	if (p->len < TLS_HELLO_BEGIN)
		return false;
	end = message_end(p->begin);
	return end > TLS_HELLO_MAX || p->len >= end;
}

static void take_content(struct tls_hello_place *p, struct bytes content)
{
	for (size_t i = 0; i < content.len && p->len + i < TLS_HELLO_BEGIN; i++)
		p->begin[p->len + i] = content.ptr[i];
	p->len += content.len;
	p->left -= content.len;
	p->at += content.len;
}

static bool records_settled(struct bytes so_far, struct tls_hello_place *p)
{
	struct bytes rest = bytes_tail(so_far, p->at);

	while (rest.len > 0) {
		if (p->left > 0) {
			take_content(p, bytes_head(rest, p->left));
			if (message_settled(p))
				return true;
		} else if (!is_record(rest)) {
			return true;
		} else if (rest.len < RECORD_HEADER) {
			return false;
		} else if (!is_length(record_length(rest))) {
			return true;
		} else {
			p->left = record_length(rest);
			p->at += RECORD_HEADER;
		}
		rest = bytes_tail(so_far, p->at);
	}
	return false;
}

bool tls_hello_settled(struct bytes so_far, struct tls_hello_place *p)
{
	return records_settled(bytes_head(so_far, TLS_HELLO_MAX), p) || so_far.len >= TLS_HELLO_MAX;
}

bool tls_hello_begun(const struct tls_hello_place *p)
{
	return p->len >= TLS_HELLO_BEGIN && p->begin[0] == MESSAGE_CLIENT_HELLO;
}

bool tls_hello_arrived(const struct tls_hello_place *p)
{
	size_t end = message_end(p->begin);

	return tls_hello_begun(p) && end <= TLS_HELLO_MAX && p->len >= end;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* What the records so far hold of the message, put together. */
struct message {
	uint8_t bytes[TLS_HELLO_MAX];
	size_t len;
};

/* The content of the record in front, as much of it as has arrived. */
static enum tls_hello_verdict take_record(struct bytes *in, struct message *m)
{
	struct bytes header, content;
	size_t n;

	if (!is_record(*in))
		return TLS_HELLO_BROKEN;
	if (!take(in, RECORD_HEADER, &header))
		return TLS_HELLO_MORE;
	n = record_length(header);
	if (!is_length(n))
		return TLS_HELLO_BROKEN;
	content = bytes_head(*in, n);
	if (content.len > 0)
		memcpy(m->bytes + m->len, content.ptr, content.len);
	m->len += content.len;
	*in = bytes_tail(*in, n);
	return content.len < n ? TLS_HELLO_MORE : TLS_HELLO_WHOLE;
}

/* Is the message whole, and where does it end? */
static enum tls_hello_verdict look(const struct message *m, size_t *ret_end)
{
	if (m->len > 0 && m->bytes[0] != MESSAGE_CLIENT_HELLO)
		return TLS_HELLO_BROKEN;
	if (m->len < TLS_HELLO_BEGIN)
		return TLS_HELLO_MORE;
	*ret_end = message_end(m->bytes);
	if (*ret_end > TLS_HELLO_MAX ||
	    m->len > *ret_end) /* of the handshake, nothing follows before an answer */
		return TLS_HELLO_BROKEN;
	return m->len < *ret_end ? TLS_HELLO_MORE : TLS_HELLO_WHOLE;
}

enum tls_hello_verdict tls_hello_read(struct bytes so_far, struct tls_hello *ret)
{
	struct bytes in = bytes_head(so_far, TLS_HELLO_MAX);
	enum tls_hello_verdict record = TLS_HELLO_WHOLE, message = TLS_HELLO_MORE;
	struct message m;
	size_t end = 0;

	m.len = 0;
	if (in.len > 0 && in.ptr[0] != RECORD_HANDSHAKE)
		return TLS_HELLO_OTHER;
	while (record == TLS_HELLO_WHOLE && message == TLS_HELLO_MORE) {
		record = take_record(&in, &m);
		if (record == TLS_HELLO_BROKEN)
			return TLS_HELLO_BROKEN;
		message = look(&m, &end);
	}
	if (message == TLS_HELLO_MORE)
		return so_far.len >= TLS_HELLO_MAX ? TLS_HELLO_BROKEN : TLS_HELLO_MORE;
	/* records behind it may be early data, but its own must end with it */
	if (message == TLS_HELLO_BROKEN || record == TLS_HELLO_MORE)
		return TLS_HELLO_BROKEN;
	return read_message((struct bytes){ m.bytes + TLS_HELLO_BEGIN, end - TLS_HELLO_BEGIN }, ret)
		       ? TLS_HELLO_WHOLE
		       : TLS_HELLO_BROKEN;
}
