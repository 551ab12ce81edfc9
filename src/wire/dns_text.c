/* dns_text.c - see dns_text.h. */
#include "wire/dns_text.h"

#include <stdarg.h>

enum {
	FLAG_REPLY = 0x8000,
	FLAG_TRUNCATED = 0x0200,
	RCODE_MASK = 0x000f,
	POINTER_TO_QUESTION = 0xc000 | DNS_HEADER_SIZE,
	RECORD_SIZE = 12, /* the pointer, type, class, ttl and length */
	OPTION_ERROR = 15,
	ERROR_BLOCKED = 15, /* by a policy of who runs the resolver */
	OPTION_SIZE = 6,    /* code, length, and which error */
};

static uint16_t u16_at(struct bytes b, size_t at)
{
	return (uint16_t)(b.ptr[at] << 8 | b.ptr[at + 1]);
}

static void put_u16(uint8_t *to, size_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

void dns_lines_add(struct dns_lines *l, const char *fmt, ...)
{
	va_list ap;

	if (l->n == DNS_LINES_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(l->line[l->n++], DNS_LINE_MAX + 1, fmt, ap);
	va_end(ap);
}

/* --- telling ------------------------------------------------------------------------------ */

/* Bytes of the lines that fit into `room`, each with its length before it. */
static size_t fitting(const struct dns_lines *l, size_t room)
{
	size_t all = 0;

	for (size_t i = 0; i < l->n; i++) {
		size_t one = 1 + strlen(l->line[i]);

		if (one > room - all)
			break;
		all += one;
	}
	return all;
}

static void put_record(uint8_t *to, const struct dns_lines *l, size_t text)
{
	size_t at = RECORD_SIZE;

	put_u16(to, POINTER_TO_QUESTION);
	put_u16(to + 2, DNS_TYPE_TXT);
	put_u16(to + 4, DNS_CLASS_INTERNET);
	memset(to + 6, 0, 4); /* rules change: nobody keeps it */
	put_u16(to + 10, text);
	for (size_t i = 0; at < RECORD_SIZE + text; i++) {
		size_t n = strlen(l->line[i]);

		to[at] = (uint8_t)n;
		memcpy(to + at + 1, l->line[i], n);
		at += 1 + n;
	}
}

int dns_write_lines(const struct dns_query *q, const struct dns_lines *l, struct buf *out,
		    struct err *err)
{
	size_t opt = q->edns ? (size_t)DNS_OPT_SIZE : 0, before = out->len;
	size_t head = DNS_HEADER_SIZE + q->question.len;
	size_t most = q->edns ? DNS_EDNS_MAX : DNS_PLAIN_MAX;
	size_t text = fitting(l, most - head - opt - RECORD_SIZE), told;
	uint8_t *to;

	if (dns_write_refusal(q, DNS_NOERROR, out, err) < 0)
		return -1;
	if (text == 0)
		return 0;
	told = RECORD_SIZE + text;
	if (buf_reserve(out, told, &to, err) < 0) {
		out->len = before;
		return -1;
	}
	to = out->ptr + before + head;
	memmove(to + told, to, opt); /* the OPT record comes last */
	put_record(to, l, text);
	put_u16(out->ptr + before + 6, 1);
	buf_claim(out, told);
	return 0;
}

int dns_write_blocked(const struct dns_query *q, const char *why, struct buf *out, struct err *err)
{
	size_t n = strnlen(why, DNS_REASON_MAX), before = out->len;
	uint8_t *to;

	if (dns_write_refusal(q, DNS_NXDOMAIN, out, err) < 0)
		return -1;
	if (!q->edns)
		return 0;
	if (buf_reserve(out, OPTION_SIZE + n, &to, err) < 0) {
		out->len = before;
		return -1;
	}
	put_u16(to - 2, OPTION_SIZE + n); /* the OPT record is the last, and had no options */
	put_u16(to, OPTION_ERROR);
	put_u16(to + 2, n + 2);
	put_u16(to + 4, ERROR_BLOCKED);
	memcpy(to + OPTION_SIZE, why, n);
	buf_claim(out, OPTION_SIZE + n);
	return 0;
}

/* --- asking ------------------------------------------------------------------------------- */

int dns_write_lines_query(uint16_t id, const char *name, struct buf *out, struct err *err)
{
	if (dns_write_query(id, name, 0, out, err) < 0)
		return -1;
	put_u16(out->ptr + out->len - DNS_OPT_SIZE - 4, DNS_TYPE_TXT);
	return 0;
}

static void add_readable(struct dns_lines *l, struct bytes text)
{
	char *to = l->line[l->n++];

	for (size_t i = 0; i < text.len; i++)
		to[i] = (char)(text.ptr[i] >= ' ' && text.ptr[i] <= '~' ? text.ptr[i] : '?');
	to[text.len] = '\0';
}

static bool read_record(struct bytes in, struct dns_lines *ret)
{
	size_t at = RECORD_SIZE, end;

	if (in.len < RECORD_SIZE || u16_at(in, 0) != POINTER_TO_QUESTION ||
	    u16_at(in, 2) != DNS_TYPE_TXT || u16_at(in, 4) != DNS_CLASS_INTERNET)
		return false;
	end = RECORD_SIZE + (size_t)u16_at(in, 10);
	if (end > in.len)
		return false;
	while (at < end && ret->n < DNS_LINES_MAX) {
		size_t n = in.ptr[at];

		if (n > end - at - 1)
			return false;
		add_readable(ret, (struct bytes){ in.ptr + at + 1, n });
		at += 1 + n;
	}
	return ret->n > 0;
}

bool dns_read_lines(struct bytes in, struct bytes query, struct dns_lines *ret)
{
	struct bytes question =
		bytes_tail(bytes_head(query, query.len - DNS_OPT_SIZE), DNS_HEADER_SIZE);

	*ret = (struct dns_lines){ 0 };
	if (in.len < DNS_HEADER_SIZE || in.len > DNS_ANSWER_MAX ||
	    u16_at(in, 0) != u16_at(query, 0) || !(u16_at(in, 2) & FLAG_REPLY) ||
	    (u16_at(in, 2) & (FLAG_TRUNCATED | RCODE_MASK)) || u16_at(in, 4) != 1 ||
	    u16_at(in, 6) != 1 ||
	    !bytes_eq(bytes_head(bytes_tail(in, DNS_HEADER_SIZE), question.len), question))
		return false;
	return read_record(bytes_tail(in, DNS_HEADER_SIZE + question.len), ret);
}
