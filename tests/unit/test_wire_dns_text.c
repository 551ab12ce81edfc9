/* test_wire_dns_text.c - lines of text in answers of a resolver, told and read again. */
#include "tests/unit/check.h"

#include "wire/dns_text.h"

#define NAME "github.com.why.hotcell.internal"

struct asked {
	struct buf text;
	struct dns_query query;
};

static struct asked asks(void)
{
	struct asked a = { .text = BUF_MAX(DNS_QUERY_MAX) };
	struct err err;

	assert_int_equal(dns_write_lines_query(0x1234, NAME, &a.text, &err), 0);
	assert_int_equal(dns_read_query(buf_view(&a.text), &a.query), DNS_ASKS);
	assert_int_equal(a.query.type, DNS_TYPE_TXT);
	assert_true(a.query.edns);
	return a;
}

static void lines_are_read_as_they_were_told(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_EDNS_MAX);
	struct asked a = asks();
	struct dns_lines told = { 0 }, read;
	struct err err;

	(void)state;
	dns_lines_add(&told, "no");
	dns_lines_add(&told, "operator: %s", "not listed");
	dns_lines_add(&told, "%s", "");
	assert_int_equal(dns_write_lines(&a.query, &told, &out, &err), 0);
	assert_true(dns_read_lines(buf_view(&out), buf_view(&a.text), &read));
	assert_int_equal(read.n, 3);
	assert_string_equal(read.line[0], "no");
	assert_string_equal(read.line[1], "operator: not listed");
	assert_string_equal(read.line[2], "");
	buf_done(&a.text);
}

static void no_more_is_told_than_fits(void **state)
{
	struct asked a = asks();
	struct dns_lines told = { 0 }, read;
	char line[2 * DNS_LINE_MAX];
	struct err err;

	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	for (int i = 0; i < DNS_LINES_MAX + 3; i++)
		dns_lines_add(&told, "%s", line);
	assert_int_equal(told.n, DNS_LINES_MAX);
	assert_int_equal(strlen(told.line[0]), DNS_LINE_MAX);
	for (int edns = 0; edns < 2; edns++) {
		AUTO(buf_done) struct buf out = BUF_MAX(DNS_EDNS_MAX);

		a.query.edns = edns;
		assert_int_equal(dns_write_lines(&a.query, &told, &out, &err), 0);
		assert_true(out.len <= (edns ? DNS_EDNS_MAX : DNS_PLAIN_MAX));
		assert_true(dns_read_lines(buf_view(&out), buf_view(&a.text), &read));
		assert_int_equal(read.n, edns ? 4 : 1);
	}
	buf_done(&a.text);
}

static void what_is_no_answer_to_it_is_not_read(void **state)
{
	static const struct {
		const char *name;
		size_t at;
		uint8_t byte;
	} rows[] = {
		{ "another's", 0, 0x99 },
		{ "a question", 2, 0x01 },
		{ "cut", 2, 0x83 },
		{ "refused", 3, 0x83 },
		{ "two questions", 5, 2 },
		{ "no answer", 7, 0 },
		{ "another name", 13, 'x' },
		{ "no pointer", 12 + 33 + 4, 0 },
		{ "an address", 12 + 33 + 7, 1 },
		{ "longer than it is", 12 + 33 + 14, 9 },
		{ "a line longer than all", 12 + 33 + 16, 200 },
	};
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_EDNS_MAX);
	struct asked a = asks();
	struct dns_lines told = { 0 }, read;
	struct err err;

	(void)state;
	a.query.edns = false;
	dns_lines_add(&told, "yes");
	assert_int_equal(dns_write_lines(&a.query, &told, &out, &err), 0);
	FOR_ROWS(row, rows) {
		uint8_t was = out.ptr[row->at];

		out.ptr[row->at] = row->byte;
		assert_int_not_equal(was, row->byte);
		assert_false(dns_read_lines(buf_view(&out), buf_view(&a.text), &read));
		out.ptr[row->at] = was;
	}
	for (size_t n = 0; n < out.len; n++)
		assert_false(
			dns_read_lines(bytes_head(buf_view(&out), n), buf_view(&a.text), &read));
	out.ptr[out.len - 1] = 7;
	assert_true(dns_read_lines(buf_view(&out), buf_view(&a.text), &read));
	assert_string_equal(read.line[0], "ye?");
	buf_done(&a.text);
}

static void a_refusal_has_its_reason_where_it_may(void **state)
{
	struct asked a = asks();
	struct dns_addresses none;
	char longest[2 * DNS_REASON_MAX];
	struct err err;

	(void)state;
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (int edns = 0; edns < 2; edns++) {
		AUTO(buf_done) struct buf out = BUF_MAX(DNS_EDNS_MAX);
		AUTO(buf_done) struct buf most = BUF_MAX(DNS_EDNS_MAX);

		a.query.edns = edns;
		assert_int_equal(dns_write_blocked(&a.query, "because", &out, &err), 0);
		assert_int_equal(out.ptr[3] & 0xf, DNS_NXDOMAIN);
		assert_int_equal(dns_read_answer(buf_view(&out), buf_view(&a.text), &none),
				 DNS_NO_NAME);
		if (!edns) {
			assert_int_equal(out.len, DNS_HEADER_SIZE + a.query.question.len);
			continue;
		}
		/* OPT: its length, then option 15, its length, error 15, and the text */
		assert_memory_equal(out.ptr + out.len - 15, "\0\15\0\17\0\11\0\17because", 15);
		assert_int_equal(dns_write_blocked(&a.query, longest, &most, &err), 0);
		assert_int_equal(most.len, out.len + DNS_REASON_MAX - strlen("because"));
	}
	buf_done(&a.text);
}

static void without_room_nothing_is_written(void **state)
{
	struct asked a = asks();
	struct dns_lines told = { 0 };
	struct err err;

	(void)state;
	dns_lines_add(&told, "no");
	for (size_t max = 0; max < DNS_HEADER_SIZE + a.query.question.len + DNS_OPT_SIZE + 10;
	     max++) {
		AUTO(buf_done) struct buf out = BUF_MAX(max);

		assert_int_equal(dns_write_lines(&a.query, &told, &out, &err), -1);
		assert_int_equal(out.len, 0);
		assert_int_equal(dns_write_blocked(&a.query, "because it is so", &out, &err), -1);
		assert_int_equal(out.len, 0);
	}
	buf_done(&a.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_read_as_they_were_told),
		cmocka_unit_test(no_more_is_told_than_fits),
		cmocka_unit_test(what_is_no_answer_to_it_is_not_read),
		cmocka_unit_test(a_refusal_has_its_reason_where_it_may),
		cmocka_unit_test(without_room_nothing_is_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
