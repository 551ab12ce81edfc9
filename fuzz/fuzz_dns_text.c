/* fuzz_dns_text.c - promises of dns_text: lines that are read stand in an answer to the question,
 * are text, and are read the same when they are told again. */
#include "fuzz/must.h"
#include "wire/dns_text.h"

#define NAME "a.example.why.hotcell.internal"

static void must_be_text(const struct dns_lines *l)
{
	MUST(l->n > 0 && l->n <= DNS_LINES_MAX);
	for (size_t i = 0; i < l->n; i++) {
		MUST(strlen(l->line[i]) <= DNS_LINE_MAX);
		for (const char *c = l->line[i]; *c; c++)
			MUST(*c >= ' ' && *c <= '~');
	}
}

static void must_tell(struct bytes query, const struct dns_lines *l)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_EDNS_MAX);
	struct dns_lines again;
	struct dns_query q;
	struct err err;

	MUST(dns_read_query(query, &q) == DNS_ASKS);
	MUST(dns_write_lines(&q, l, &out, &err) == 0 && out.len <= DNS_EDNS_MAX);
	MUST(dns_read_lines(buf_view(&out), query, &again));
	MUST(again.n <= l->n);
	for (size_t i = 0; i < again.n; i++)
		MUST(strcmp(again.line[i], l->line[i]) == 0);
}

static void check(struct bytes in, struct bytes query)
{
	struct dns_lines l;

	if (!dns_read_lines(in, query, &l))
		return;
	MUST(in.ptr[0] == query.ptr[0] && in.ptr[1] == query.ptr[1] && (in.ptr[2] & 0x80));
	must_be_text(&l);
	must_tell(query, &l);
}

/* What a guest asks, answered with a reason: no answer is longer than it may be. */
static void must_block(struct bytes in)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_EDNS_MAX);
	struct dns_query q;
	struct err err;

	if (dns_read_query(in, &q) != DNS_ASKS)
		return;
	MUST(dns_write_blocked(&q, "because", &out, &err) == 0);
	MUST(out.len <= DNS_PLAIN_MAX && (out.ptr[3] & 0xf) == DNS_NXDOMAIN);
	MUST(dns_read_query(buf_view(&out), &q) == DNS_SILENCE);
}

/* As it is, and behind the head of a true answer: the record is what is interesting. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf query = BUF_MAX(DNS_QUERY_MAX);
	AUTO(buf_done) struct buf whole = BUF_MAX(DNS_ANSWER_MAX + DNS_QUERY_MAX);
	struct err err;

	MUST(dns_write_lines_query(0x4852, NAME, &query, &err) == 0);
	must_block((struct bytes){ data, size });
	check((struct bytes){ data, size }, buf_view(&query));
	MUST(buf_add(&whole, bytes_head(buf_view(&query), query.len - DNS_OPT_SIZE), &err) == 0);
	whole.ptr[2] = 0x81;
	whole.ptr[3] = 0x80;
	whole.ptr[7] = 1;
	whole.ptr[11] = 0;
	if (buf_add(&whole, (struct bytes){ data, size }, &err) == 0)
		check(buf_view(&whole), buf_view(&query));
	return 0;
}
