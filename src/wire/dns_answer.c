/* dns_answer.c - see dns_answer.h. */
#include "wire/dns_answer.h"

enum {
	FLAG_REPLY = 0x8000,
	FLAG_TRUNCATED = 0x0200,
	FLAG_RECURSION = 0x0100,
	OPCODE_MASK = 0x7800,
	RCODE_MASK = 0x000f,
	RCODE_NXDOMAIN = 3,
	TYPE_CNAME = 5,
	TYPE_OPT = 41,
	OPT_PAYLOAD = 1232,
	POINTER = 0xc0,
	RECORD_SIZE = 10, /* type, class, ttl and length, behind the name */
	JUMPS_MAX = 32,
	TTL_MAX = 24 * 3600,
};

static uint16_t u16_at(struct bytes b, size_t at)
{
	return (uint16_t)(b.ptr[at] << 8 | b.ptr[at + 1]);
}

static uint32_t u32_at(struct bytes b, size_t at)
{
	return (uint32_t)u16_at(b, at) << 16 | u16_at(b, at + 2);
}

static void put_u16(uint8_t *to, unsigned int value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

/* --- names -------------------------------------------------------------------------------- */

/* Names as they are compared: labels in lower case, each with its length, up to the root. */
struct spelled {
	uint8_t bytes[DNS_NAME_MAX];
	size_t len;
};

static bool add_label(struct spelled *s, const uint8_t *label, size_t n)
{
	if (s->len + 1 + n >= sizeof(s->bytes)) /* the root comes yet */
		return false;
	s->bytes[s->len++] = (uint8_t)n;
	for (size_t i = 0; i < n; i++)
		s->bytes[s->len++] = byte_lower(label[i]);
	return true;
}

/* The name at *at of a message, with pointers, which only lead back. *at: behind it. */
static bool spell(struct bytes in, size_t *at, struct spelled *ret)
{
	size_t here = *at, lowest = *at;
	bool jumped = false;

	ret->len = 0;
	for (int jumps = 0; jumps < JUMPS_MAX && here < in.len;) {
		uint8_t n = in.ptr[here];

		if (n == 0) {
			ret->bytes[ret->len++] = 0;
			*at = jumped ? *at : here + 1;
			return true;
		}
		if ((n & POINTER) == POINTER) {
			if (here + 2 > in.len)
				return false;
			*at = jumped ? *at : here + 2;
			jumped = true;
			here = u16_at(in, here) & 0x3fff;
			if (here >= lowest || here < DNS_HEADER_SIZE)
				return false;
			lowest = here;
			jumps++;
			continue;
		}
		if (n > DNS_LABEL_MAX || here + 1 + n > in.len ||
		    !add_label(ret, in.ptr + here + 1, n))
			return false;
		here += 1 + (size_t)n;
	}
	return false;
}

static bool is_same(const struct spelled *a, const struct spelled *b)
{
	return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

bool dns_query_name(const struct dns_query *q, char ret[static DOMAIN_SIZE])
{
	uint8_t text[DNS_NAME_MAX];
	size_t len = 0, at = 0;

	while (q->question.ptr[at] != 0) {
		size_t n = q->question.ptr[at];

		if (memchr(q->question.ptr + at + 1, '.', n)) /* no separator inside a label */
			return false;
		memcpy(text + len, q->question.ptr + at + 1, n);
		len += n;
		text[len++] = '.';
		at += 1 + n;
	}
	return domain_normal((struct bytes){ text, len > 0 ? len - 1 : 0 }, ret);
}

/* --- asking ------------------------------------------------------------------------------- */

static uint8_t in_caps(char c, uint64_t caps, size_t i)
{
	bool up = c >= 'a' && c <= 'z' && (caps >> (i % 64) & 1);

	return (uint8_t)(up ? c - ('a' - 'A') : c);
}

/* From the text of a normal name: each dot becomes the length of what follows. */
static void put_name(const char *name, uint64_t caps, uint8_t *to)
{
	size_t length_at = 0, n = strlen(name);

	for (size_t i = 0; i <= n; i++) {
		if (i < n && name[i] != '.') {
			to[i + 1] = in_caps(name[i], caps, i);
			continue;
		}
		to[length_at] = (uint8_t)(i - length_at);
		length_at = i + 1;
	}
	to[n + 1] = 0;
}

int dns_write_query(uint16_t id, const char *name, uint64_t caps, struct buf *out, struct err *err)
{
	size_t named = strlen(name) + 2, size = DNS_HEADER_SIZE + named + 4 + DNS_OPT_SIZE;
	uint8_t *to;

	if (buf_reserve(out, size, &to, err) < 0)
		return -1;
	memset(to, 0, size);
	put_u16(to, id);
	put_u16(to + 2, FLAG_RECURSION);
	put_u16(to + 4, 1);
	put_u16(to + 10, 1);
	put_name(name, caps, to + DNS_HEADER_SIZE);
	put_u16(to + DNS_HEADER_SIZE + named, DNS_TYPE_A);
	put_u16(to + DNS_HEADER_SIZE + named + 2, DNS_CLASS_INTERNET);
	put_u16(to + size - DNS_OPT_SIZE + 1, TYPE_OPT);
	put_u16(to + size - DNS_OPT_SIZE + 3, OPT_PAYLOAD);
	buf_claim(out, size);
	return 0;
}

/* --- reading an answer -------------------------------------------------------------------- */

struct record {
	struct spelled name;
	uint16_t type, class;
	uint32_t ttl_s;
	size_t data_at;
	size_t data_len;
};

static bool take_record(struct bytes in, size_t *at, struct record *ret)
{
	if (!spell(in, at, &ret->name) || in.len - *at < RECORD_SIZE)
		return false;
	ret->type = u16_at(in, *at);
	ret->class = u16_at(in, *at + 2);
	ret->ttl_s = u32_at(in, *at + 4);
	ret->data_len = u16_at(in, *at + 8);
	ret->data_at = *at + RECORD_SIZE;
	if (in.len - ret->data_at < ret->data_len)
		return false;
	*at = ret->data_at + ret->data_len;
	return true;
}

struct walk {
	struct bytes in;
	size_t from; /* the first record */
	size_t records;
	struct spelled name; /* whose addresses are looked for now */
	struct dns_addresses *out;
};

static void note_ttl(struct walk *w, const struct record *r)
{
	uint32_t ttl = r->ttl_s > TTL_MAX ? TTL_MAX : r->ttl_s;

	if (ttl < w->out->ttl_s)
		w->out->ttl_s = ttl;
}

static void keep_address(struct walk *w, const struct record *r)
{
	if (r->data_len != 4 || w->out->n == DNS_ADDRESSES_MAX)
		return;
	w->out->ip[w->out->n++] = u32_at(w->in, r->data_at);
	note_ttl(w, r);
}

/* All records once: addresses of the name are kept. True: it is another's alias instead, which is
 * the name now. */
static bool follow(struct walk *w, bool *ret_broken)
{
	size_t at = w->from;

	for (size_t i = 0; i < w->records; i++) {
		struct record r;
		size_t data;

		*ret_broken = !take_record(w->in, &at, &r);
		if (*ret_broken)
			return false;
		if (r.class != DNS_CLASS_INTERNET || !is_same(&r.name, &w->name))
			continue;
		if (r.type == DNS_TYPE_A)
			keep_address(w, &r);
		if (r.type != TYPE_CNAME || w->out->n > 0)
			continue;
		data = r.data_at;
		*ret_broken = !spell(w->in, &data, &w->name) || data != r.data_at + r.data_len;
		note_ttl(w, &r);
		return !*ret_broken;
	}
	return false;
}

static enum dns_reading read_records(struct walk *w)
{
	bool broken = false;

	w->out->n = 0;
	w->out->ttl_s = TTL_MAX;
	for (int i = 0; i <= DNS_ALIASES_MAX; i++)
		if (!follow(w, &broken))
			return broken ? DNS_NOT_OURS : DNS_ANSWERED;
	return DNS_FAILED; /* in a circle, or nearly */
}

/* The question of a query that we wrote: everything between its head and its OPT record. */
static struct bytes question_of(struct bytes query)
{
	return bytes_tail(bytes_head(query, query.len - DNS_OPT_SIZE), DNS_HEADER_SIZE);
}

enum dns_reading dns_read_answer(struct bytes in, struct bytes query, struct dns_addresses *ret)
{
	struct bytes question = question_of(query);
	struct walk w = { .in = in, .from = DNS_HEADER_SIZE + question.len, .out = ret };
	size_t at = DNS_HEADER_SIZE;
	uint16_t flags;

	*ret = (struct dns_addresses){ 0 };
	if (in.len < DNS_HEADER_SIZE || in.len > DNS_ANSWER_MAX ||
	    u16_at(in, 0) != u16_at(query, 0))
		return DNS_NOT_OURS;
	flags = u16_at(in, 2);
	if (!(flags & FLAG_REPLY) || (flags & OPCODE_MASK) || u16_at(in, 4) != 1 ||
	    !bytes_eq(bytes_head(bytes_tail(in, DNS_HEADER_SIZE), question.len), question))
		return DNS_NOT_OURS;
	if (flags & FLAG_TRUNCATED)
		return DNS_CUT;
	if ((flags & RCODE_MASK) == RCODE_NXDOMAIN)
		return DNS_NO_NAME;
	if (flags & RCODE_MASK)
		return DNS_FAILED;
	w.records = u16_at(in, 6);
	if (w.records > DNS_RECORDS_MAX || !spell(in, &at, &w.name))
		return DNS_NOT_OURS;
	return read_records(&w);
}

/* --- telling a guest ---------------------------------------------------------------------- */

enum { TOLD_SIZE = 16 }; /* a pointer to the question, type, class, ttl, length, address */

static uint8_t *put_address(uint8_t *to, uint32_t ip, uint32_t ttl_s)
{
	put_u16(to, POINTER << 8 | DNS_HEADER_SIZE);
	put_u16(to + 2, DNS_TYPE_A);
	put_u16(to + 4, DNS_CLASS_INTERNET);
	put_u16(to + 6, ttl_s >> 16);
	put_u16(to + 8, ttl_s & 0xffff);
	put_u16(to + 10, 4);
	put_u16(to + 12, ip >> 16);
	put_u16(to + 14, ip & 0xffff);
	return to + TOLD_SIZE;
}

int dns_write_answer(const struct dns_query *q, const struct dns_addresses *a, struct buf *out,
		     struct err *err)
{
	size_t before = out->len, opt = q->edns ? (size_t)DNS_OPT_SIZE : 0;
	size_t told = a->n * TOLD_SIZE, head = DNS_HEADER_SIZE + q->question.len;
	uint8_t *to;

	if (dns_write_refusal(q, DNS_NOERROR, out, err) < 0)
		return -1;
	if (buf_reserve(out, told, &to, err) < 0) {
		out->len = before;
		return -1;
	}
	to = out->ptr + before + head;
	memmove(to + told, to, opt); /* the OPT record comes last */
	for (size_t i = 0; i < a->n; i++)
		to = put_address(to, a->ip[i], a->ttl_s);
	put_u16(out->ptr + before + 6, (unsigned int)a->n);
	buf_claim(out, told);
	return 0;
}
