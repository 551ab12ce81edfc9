/* test_wire_dns_answer.c - asking a resolver, believing it as far as it answers, telling a guest.
 */
#include "tests/unit/check.h"

#include "wire/dns_answer.h"

struct answer {
	uint8_t bytes[1024];
	size_t len, records;
};

static void put(struct answer *a, size_t octets, size_t value)
{
	while (octets-- > 0)
		a->bytes[a->len++] = (uint8_t)(value >> (8 * octets));
}

static void put_name(struct answer *a, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		put(a, 1, n);
		memcpy(a->bytes + a->len, name, n);
		a->len += n;
		name += n + (name[n] == '.');
	}
	put(a, 1, 0);
}

static void begin(struct answer *a, struct bytes query, unsigned int flags)
{
	*a = (struct answer){ .len = query.len - DNS_OPT_SIZE };
	memcpy(a->bytes, query.ptr, a->len);
	a->bytes[2] = (uint8_t)(flags >> 8);
	a->bytes[3] = (uint8_t)flags;
	a->bytes[11] = 0;
}

static void head(struct answer *a, const char *name, unsigned int type, unsigned int ttl)
{
	if (name)
		put_name(a, name);
	else
		put(a, 2, 0xc00c);
	put(a, 2, type);
	put(a, 2, 1);
	put(a, 4, ttl);
	a->bytes[7] = (uint8_t)++a->records;
}

static void address(struct answer *a, const char *name, uint32_t ip, unsigned int ttl)
{
	head(a, name, 1, ttl);
	put(a, 2, 4);
	put(a, 4, ip);
}

static void alias(struct answer *a, const char *name, const char *to, unsigned int ttl)
{
	head(a, name, 5, ttl);
	put(a, 2, strlen(to) + 2);
	put_name(a, to);
}

static enum dns_reading hear(const struct answer *a, struct bytes query, struct dns_addresses *got)
{
	return dns_read_answer((struct bytes){ a->bytes, a->len }, query, got);
}

static void ask(struct buf *out, const char *name)
{
	struct err err = { 0 };

	assert_int_equal(dns_write_query(0x1234, name, 0x5, out, &err), 0);
}

static void a_query_is_one_we_would_read(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(512);
	char name[DOMAIN_SIZE];
	struct dns_query q;

	(void)state;
	ask(&out, "www.example.com");
	assert_int_equal(dns_read_query(buf_view(&out), &q), DNS_ASKS);
	assert_int_equal(q.id, 0x1234);
	assert_int_equal(q.type, DNS_TYPE_A);
	assert_true(q.edns && q.recursion);
	assert_memory_equal(q.question.ptr, "\3WwW\7example\3com", 17);
	assert_true(dns_query_name(&q, name));
	assert_string_equal(name, "www.example.com");
}

static void addresses_and_aliases_are_followed(void **state)
{
	AUTO(buf_done) struct buf query = BUF_MAX(512);
	struct dns_addresses got;
	struct answer a;

	(void)state;
	ask(&query, "www.example.com");
	begin(&a, buf_view(&query), 0x8180);
	address(&a, "elsewhere.com", 0x7f000001, 1);
	alias(&a, NULL, "edge.example.net", 30);
	alias(&a, "EDGE.example.net", "x.example.org", 60);
	address(&a, "x.example.org", 0x01020304, 300);
	address(&a, "x.example.org", 0x05060708, 20);
	assert_int_equal(hear(&a, buf_view(&query), &got), DNS_ANSWERED);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.ip[0], 0x01020304);
	assert_int_equal(got.ip[1], 0x05060708);
	assert_int_equal(got.ttl_s, 20);
}

static void what_answers_something_else_is_not_heard(void **state)
{
	AUTO(buf_done) struct buf query = BUF_MAX(512);
	struct dns_addresses got;
	struct answer a;

	(void)state;
	ask(&query, "www.example.com");
	begin(&a, buf_view(&query), 0x8180);
	address(&a, NULL, 0x01020304, 300);
	a.bytes[0] ^= 1;
	assert_int_equal(hear(&a, buf_view(&query), &got), DNS_NOT_OURS);
	a.bytes[0] ^= 1;
	a.bytes[13] ^= 0x20; /* the case of a letter */
	assert_int_equal(hear(&a, buf_view(&query), &got), DNS_NOT_OURS);
	a.bytes[13] ^= 0x20;
	for (size_t n = 0; n < a.len; n++) {
		a.len--;
		assert_int_not_equal(hear(&a, buf_view(&query), &got), DNS_ANSWERED);
	}
}

static void codes_are_told_apart(void **state)
{
	static const struct {
		const char *name;
		unsigned int flags;
		enum dns_reading reading;
	} rows[] = {
		{ "nothing there", 0x8180, DNS_ANSWERED },
		{ "no such name", 0x8183, DNS_NO_NAME },
		{ "cut", 0x8380, DNS_CUT },
		{ "server failed", 0x8182, DNS_FAILED },
		{ "refused", 0x8185, DNS_FAILED },
		{ "a question", 0x0100, DNS_NOT_OURS },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf query = BUF_MAX(512);
		struct dns_addresses got;
		struct answer a;

		ask(&query, "example.com");
		begin(&a, buf_view(&query), row->flags);
		assert_int_equal(hear(&a, buf_view(&query), &got), row->reading);
		assert_int_equal(got.n, 0);
	}
}

static void circles_end(void **state)
{
	AUTO(buf_done) struct buf query = BUF_MAX(512);
	struct dns_addresses got;
	struct answer a;

	(void)state;
	ask(&query, "a.com");
	begin(&a, buf_view(&query), 0x8180);
	alias(&a, NULL, "b.com", 30);
	alias(&a, "b.com", "a.com", 30);
	assert_int_equal(hear(&a, buf_view(&query), &got), DNS_FAILED);
	begin(&a, buf_view(&query), 0x8180);
	a.bytes[7] = 1;
	put(&a, 2, 0xc000 | a.len); /* a pointer to itself */
	for (int i = 0; i < 10; i++)
		put(&a, 1, 0);
	assert_int_equal(hear(&a, buf_view(&query), &got), DNS_NOT_OURS);
}

static void a_guest_is_told_what_it_asked(void **state)
{
	const struct dns_addresses a = { { 0x01020304, 0x05060708 }, 2, 30 }, none = { 0 };
	AUTO(buf_done) struct buf query = BUF_MAX(512);
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_RESOLVED_MAX);
	AUTO(buf_done) struct buf empty = BUF_MAX(DNS_RESOLVED_MAX);
	struct dns_addresses got;
	struct dns_query q;
	struct err err;

	(void)state;
	ask(&query, "www.example.com");
	assert_int_equal(dns_read_query(buf_view(&query), &q), DNS_ASKS);
	assert_int_equal(dns_write_answer(&q, &a, &out, &err), 0);
	assert_int_equal(dns_read_answer(buf_view(&out), buf_view(&query), &got), DNS_ANSWERED);
	assert_int_equal(got.n, 2);
	assert_int_equal(got.ip[1], 0x05060708);
	assert_int_equal(got.ttl_s, 30);
	assert_int_equal(out.ptr[out.len - DNS_OPT_SIZE + 2], 41);
	assert_int_equal(dns_write_answer(&q, &none, &empty, &err), 0);
	assert_int_equal(dns_read_answer(buf_view(&empty), buf_view(&query), &got), DNS_ANSWERED);
	assert_int_equal(got.n, 0);
}

static void a_dot_inside_a_label_is_no_name(void **state)
{
	struct dns_query q = { .question = BYTES_LIT("\3a.b\3com\0\0\1\0\1") };
	char name[DOMAIN_SIZE];

	(void)state;
	assert_false(dns_query_name(&q, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_query_is_one_we_would_read),
		cmocka_unit_test(addresses_and_aliases_are_followed),
		cmocka_unit_test(what_answers_something_else_is_not_heard),
		cmocka_unit_test(codes_are_told_apart),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(a_guest_is_told_what_it_asked),
		cmocka_unit_test(a_dot_inside_a_label_is_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
