/* fuzz_dns_answer.c - promises of dns_answer: what is believed answers the question, its addresses
 * stand in the message, and a guest that is told them reads the same. */
#include "fuzz/must.h"
#include "wire/dns_answer.h"

#define NAME "www.example.com"

static bool stands_in(struct bytes in, uint32_t ip)
{
	const uint8_t octets[4] = { (uint8_t)(ip >> 24), (uint8_t)(ip >> 16), (uint8_t)(ip >> 8),
				    (uint8_t)ip };

	return memmem(in.ptr, in.len, octets, sizeof(octets));
}

static void must_tell(struct bytes query, const struct dns_addresses *a)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_RESOLVED_MAX);
	struct dns_addresses again;
	struct dns_query q;
	struct err err;

	MUST(dns_read_query(query, &q) == DNS_ASKS);
	MUST(dns_write_answer(&q, a, &out, &err) == 0 && out.len <= DNS_RESOLVED_MAX);
	MUST(dns_read_answer(buf_view(&out), query, &again) == DNS_ANSWERED);
	MUST(again.n == a->n && memcmp(again.ip, a->ip, a->n * sizeof(a->ip[0])) == 0);
	MUST(a->n == 0 || again.ttl_s == a->ttl_s);
}

/* As it is, and behind the head of a true answer: the records are what is interesting. */
static void check(struct bytes in, struct bytes query)
{
	struct dns_addresses a;

	if (dns_read_answer(in, query, &a) != DNS_ANSWERED) {
		MUST(a.n <= DNS_ADDRESSES_MAX);
		return;
	}
	MUST(in.ptr[0] == query.ptr[0] && in.ptr[1] == query.ptr[1] && (in.ptr[2] & 0x80));
	for (size_t i = 0; i < a.n; i++)
		MUST(stands_in(in, a.ip[i]));
	must_tell(query, &a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf query = BUF_MAX(DNS_QUERY_MAX);
	AUTO(buf_done) struct buf whole = BUF_MAX(DNS_ANSWER_MAX);
	struct err err;

	MUST(dns_write_query(0x4852, NAME, 0, &query, &err) == 0);
	check((struct bytes){ data, size }, buf_view(&query));
	if (size < 1 ||
	    buf_add(&whole, bytes_head(buf_view(&query), query.len - DNS_OPT_SIZE), &err) < 0)
		return 0;
	whole.ptr[2] = 0x81;
	whole.ptr[3] = 0x80;
	whole.ptr[7] = data[0];
	whole.ptr[11] = 0;
	if (buf_add(&whole, (struct bytes){ data + 1, size - 1 }, &err) == 0)
		check(buf_view(&whole), buf_view(&query));
	return 0;
}
