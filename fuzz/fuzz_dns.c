/* fuzz_dns.c - promises of dns: what is read is spelled out inside the datagram, and the answer to
 * anything answers that and nothing else. */
#include "fuzz/must.h"
#include "wire/dns.h"

static unsigned int u16_at(struct bytes b, size_t at)
{
	MUST(at + 2 <= b.len);
	return (unsigned int)b.ptr[at] << 8 | b.ptr[at + 1];
}

/* Read again, by counting the other way round: labels fill the question up to its last five. */
static void must_be_a_question(struct bytes q)
{
	size_t at = 0;

	MUST(q.len >= 5 && q.len <= DNS_NAME_MAX + 4);
	while (q.ptr[at] != 0) {
		MUST(q.ptr[at] <= DNS_LABEL_MAX);
		at += 1 + (size_t)q.ptr[at];
		MUST(at + 5 <= q.len);
	}
	MUST(at + 5 == q.len);
}

static void must_answer(struct bytes in, const struct dns_query *q, enum dns_rcode code)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_REPLY_MAX);
	AUTO(buf_done) struct buf small = { 0 };
	struct dns_query again;
	struct err err = { 0 };
	struct bytes reply;

	MUST(dns_write_refusal(q, code, &out, &err) == 0);
	reply = buf_view(&out);
	MUST(reply.len <= DNS_REPLY_MAX && u16_at(reply, 0) == u16_at(in, 0));
	MUST(u16_at(reply, 2) >> 15 == 1 && (u16_at(reply, 2) & 0xf) == (unsigned int)code);
	MUST((u16_at(reply, 2) & 0x100) == (u16_at(in, 2) & 0x100));
	MUST(u16_at(reply, 4) == (q->question.len > 0) && u16_at(reply, 6) == 0);
	MUST(bytes_eq(bytes_head(bytes_tail(reply, DNS_HEADER_SIZE), q->question.len),
		      q->question));
	MUST(dns_read_query(reply, &again) == DNS_SILENCE); /* two of us would not talk for ever */
	small.max = reply.len - 1;
	MUST(dns_write_refusal(q, code, &small, &err) < 0 && small.len == 0);
	must_say_why(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct dns_query q;

	switch (dns_read_query(in, &q)) {
	case DNS_ASKS:
		MUST(inside(q.question, in) && size <= DNS_QUERY_MAX);
		must_be_a_question(q.question);
		MUST(q.type == u16_at(q.question, q.question.len - 4));
		MUST(q.class == u16_at(q.question, q.question.len - 2));
		/* nothing of the datagram is left unread */
		MUST(size == DNS_HEADER_SIZE + q.question.len || q.edns);
		must_answer(in, &q, DNS_NXDOMAIN);
		return 0;
	case DNS_UNREADABLE:
		MUST(q.question.len == 0 && !q.edns);
		must_answer(in, &q, DNS_FORMERR);
		return 0;
	case DNS_SILENCE:
		MUST(size < DNS_HEADER_SIZE || (data[2] & 0x80));
		return 0;
	}
	abort(); /* a verdict of its own */
}
