/* dns.c - reading questions, writing refusals. */
#include "wire/dns.h"

enum {
	FLAG_REPLY = 0x8000,
	FLAG_TRUNCATED = 0x0200,
	FLAG_RECURSION = 0x0100,           /* desired */
	FLAG_RECURSION_AVAILABLE = 0x0080, /* else some resolvers ask on */
	OPCODE_MASK = 0x7800,
	TYPE_OPT = 41,
	OPT_PAYLOAD = 1232, /* what fits into every path */
};

static uint16_t u16_at(struct bytes b, size_t at)
{
	return (uint16_t)(b.ptr[at] << 8 | b.ptr[at + 1]);
}

/* Bytes of the name in front, its root included; 0 when it is none. Pointers, with their two upper
 * bits set, are longer than a label may be. */
static size_t name_size(struct bytes in)
{
	size_t at = 0;

	while (at < in.len && at < DNS_NAME_MAX) {
		uint8_t label = in.ptr[at];

		if (label == 0)
			return at + 1;
		if (label > DNS_LABEL_MAX)
			return 0;
		at += 1 + (size_t)label;
	}
	return 0;
}

/* An OPT record: the root's name, its type, eight bytes, and options up to the very end. */
static bool is_opt(struct bytes in)
{
	return in.len >= DNS_OPT_SIZE && in.ptr[0] == 0 && u16_at(in, 1) == TYPE_OPT &&
	       u16_at(in, 9) == in.len - DNS_OPT_SIZE;
}

enum dns_verdict dns_read_query(struct bytes in, struct dns_query *ret)
{
	struct bytes rest;
	uint16_t flags;
	size_t name;

	*ret = (struct dns_query){ 0 };
	if (in.len < DNS_HEADER_SIZE || (u16_at(in, 2) & FLAG_REPLY))
		return DNS_SILENCE;
	flags = u16_at(in, 2);
	ret->id = u16_at(in, 0);
	ret->recursion = flags & FLAG_RECURSION;
	/* one question, no answer, no authority, at most one additional record */
	if (in.len > DNS_QUERY_MAX || (flags & (OPCODE_MASK | FLAG_TRUNCATED)) ||
	    u16_at(in, 4) != 1 || u16_at(in, 6) != 0 || u16_at(in, 8) != 0 || u16_at(in, 10) > 1)
		return DNS_UNREADABLE;
	rest = bytes_tail(in, DNS_HEADER_SIZE);
	name = name_size(rest);
	if (name == 0 || rest.len < name + 4)
		return DNS_UNREADABLE;
	ret->edns = u16_at(in, 10) == 1;
	if (ret->edns ? !is_opt(bytes_tail(rest, name + 4)) : rest.len != name + 4) {
		ret->edns = false;
		return DNS_UNREADABLE;
	}
	ret->type = u16_at(rest, name);
	ret->class = u16_at(rest, name + 2);
	ret->question = bytes_head(rest, name + 4);
	return DNS_ASKS;
}

static void put_u16(uint8_t *to, unsigned int value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

int dns_write_refusal(const struct dns_query *q, enum dns_rcode code, struct buf *out,
		      struct err *err)
{
	unsigned int flags = FLAG_REPLY | FLAG_RECURSION_AVAILABLE | (unsigned int)code |
			     (q->recursion ? FLAG_RECURSION : 0u);
	size_t size = DNS_HEADER_SIZE + q->question.len + (q->edns ? (size_t)DNS_OPT_SIZE : 0);
	uint8_t *to;

	if (buf_reserve(out, size, &to, err) < 0)
		return -1;
	memset(to, 0, size);
	put_u16(to, q->id);
	put_u16(to + 2, flags);
	put_u16(to + 4, q->question.len > 0);
	put_u16(to + 10, q->edns);
	if (q->question.len > 0)
		memcpy(to + DNS_HEADER_SIZE, q->question.ptr, q->question.len);
	if (q->edns) {
		put_u16(to + size - DNS_OPT_SIZE + 1, TYPE_OPT);
		put_u16(to + size - DNS_OPT_SIZE + 3, OPT_PAYLOAD);
	}
	buf_claim(out, size);
	return 0;
}
