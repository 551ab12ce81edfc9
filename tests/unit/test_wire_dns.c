/* test_wire_dns.c - which datagrams ask, which are answered, and with what. */
#include "tests/unit/check.h"

#include "base/own.h"
#include "wire/dns.h"

#define HEADER(flags, qd, an, ns, ar) "\x12\x34" flags "\0" qd "\0" an "\0" ns "\0" ar
#define PLAIN                         HEADER("\x01\x00", "\1", "\0", "\0", "\0")
#define NAME                          "\3www\7example\3org\0"
#define A_IN                          "\0\1\0\1"
#define LABEL_63 \
	"\77"    \
	"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OPT      "\0\0\x29\x04\xd0\0\0\0\0\0\0"
#define OPT_WITH "\0\0\x29\x04\xd0\0\0\0\0\0\6\0\x0a\0\2xy"

struct row {
	const char *name;
	struct bytes in;
	enum dns_verdict verdict;
	bool edns;
};

static const struct row rows[] = {
	{ "a question", BYTES_LIT(PLAIN NAME A_IN), DNS_ASKS, false },
	{ "of another type", BYTES_LIT(PLAIN NAME "\0\x1c\0\1"), DNS_ASKS, false },
	{ "for the root", BYTES_LIT(PLAIN "\0" A_IN), DNS_ASKS, false },
	{ "with EDNS", BYTES_LIT(HEADER("\1\0", "\1", "\0", "\0", "\1") NAME A_IN OPT), DNS_ASKS,
	  true },
	{ "with EDNS and options",
	  BYTES_LIT(HEADER("\1\0", "\1", "\0", "\0", "\1") NAME A_IN OPT_WITH), DNS_ASKS, true },
	{ "the longest label", BYTES_LIT(PLAIN LABEL_63 "\0" A_IN), DNS_ASKS, false },
	{ "nothing", BYTES_LIT(""), DNS_SILENCE, false },
	{ "less than a header", BYTES_LIT("\x12\x34\1\0\0\1\0\0\0\0\0"), DNS_SILENCE, false },
	{ "an answer", BYTES_LIT(HEADER("\x81\x80", "\1", "\0", "\0", "\0") NAME A_IN), DNS_SILENCE,
	  false },
	{ "a header alone", BYTES_LIT(PLAIN), DNS_UNREADABLE, false },
	{ "no question", BYTES_LIT(HEADER("\1\0", "\0", "\0", "\0", "\0")), DNS_UNREADABLE, false },
	{ "two questions", BYTES_LIT(HEADER("\1\0", "\2", "\0", "\0", "\0") NAME A_IN NAME A_IN),
	  DNS_UNREADABLE, false },
	{ "an answer in a question", BYTES_LIT(HEADER("\1\0", "\1", "\1", "\0", "\0") NAME A_IN),
	  DNS_UNREADABLE, false },
	{ "an authority", BYTES_LIT(HEADER("\1\0", "\1", "\0", "\1", "\0") NAME A_IN),
	  DNS_UNREADABLE, false },
	{ "two additional records",
	  BYTES_LIT(HEADER("\1\0", "\1", "\0", "\0", "\2") NAME A_IN OPT OPT), DNS_UNREADABLE,
	  false },
	{ "an additional record that is missing",
	  BYTES_LIT(HEADER("\1\0", "\1", "\0", "\0", "\1") NAME A_IN), DNS_UNREADABLE, false },
	{ "bytes behind", BYTES_LIT(PLAIN NAME A_IN "x"), DNS_UNREADABLE, false },
	{ "bytes behind EDNS", BYTES_LIT(HEADER("\1\0", "\1", "\0", "\0", "\1") NAME A_IN OPT "x"),
	  DNS_UNREADABLE, false },
	{ "an additional record of another type",
	  BYTES_LIT(HEADER("\1\0", "\1", "\0", "\0", "\1") NAME A_IN "\0\0\1\0\1\0\0\0\0\0\0"),
	  DNS_UNREADABLE, false },
	{ "a status query", BYTES_LIT(HEADER("\x11\0", "\1", "\0", "\0", "\0") NAME A_IN),
	  DNS_UNREADABLE, false },
	{ "an update", BYTES_LIT(HEADER("\x29\0", "\1", "\0", "\0", "\0") NAME A_IN),
	  DNS_UNREADABLE, false },
	{ "truncated", BYTES_LIT(HEADER("\3\0", "\1", "\0", "\0", "\0") NAME A_IN), DNS_UNREADABLE,
	  false },
	{ "a pointer for a name", BYTES_LIT(PLAIN "\xc0\x0c" A_IN), DNS_UNREADABLE, false },
	{ "a pointer in a name", BYTES_LIT(PLAIN "\3www\xc0\x0c" A_IN), DNS_UNREADABLE, false },
	{ "a label too long", BYTES_LIT(PLAIN "\x40" LABEL_63 "\0" A_IN), DNS_UNREADABLE, false },
	{ "a label past the end", BYTES_LIT(PLAIN "\x09www"), DNS_UNREADABLE, false },
	{ "no root", BYTES_LIT(PLAIN "\3www"), DNS_UNREADABLE, false },
	{ "no type", BYTES_LIT(PLAIN NAME "\0"), DNS_UNREADABLE, false },
	{ "no class", BYTES_LIT(PLAIN NAME "\0\1\0"), DNS_UNREADABLE, false },
	{ "256 bytes of name", BYTES_LIT(PLAIN LABEL_63 LABEL_63 LABEL_63 LABEL_63 "\0" A_IN),
	  DNS_UNREADABLE, false },
	{ "255 bytes of name",
	  BYTES_LIT(PLAIN LABEL_63 LABEL_63 LABEL_63 "\75"
						     "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
						     "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
						     "\0" A_IN),
	  DNS_ASKS, false },
};

static void datagrams_are_told_apart(void **state)
{
	(void)state;
	FOR_ROWS(row, rows) {
		struct dns_query q;

		assert_int_equal(dns_read_query(row->in, &q), row->verdict);
		assert_int_equal(q.edns, row->edns);
		if (row->verdict == DNS_ASKS)
			assert_int_equal(q.id, 0x1234);
		else
			assert_int_equal(q.question.len, 0);
	}
}

static void too_long_a_datagram_is_unreadable(void **state)
{
	uint8_t in[DNS_QUERY_MAX + 1] = PLAIN NAME A_IN;
	struct dns_query q;

	(void)state;
	assert_int_equal(dns_read_query((struct bytes){ in, sizeof(in) }, &q), DNS_UNREADABLE);
}

static void check_answer(struct bytes in, enum dns_rcode code, struct bytes expected)
{
	AUTO(buf_done) struct buf out = BUF_MAX(DNS_REPLY_MAX);
	struct dns_query q;
	struct err err = { 0 };

	(void)dns_read_query(in, &q);
	assert_int_equal(dns_write_refusal(&q, code, &out, &err), 0);
	assert_int_equal(out.len, expected.len);
	assert_memory_equal(out.ptr, expected.ptr, expected.len);
}

static void answers_are_exactly_these(void **state)
{
	(void)state;
	check_answer(BYTES_LIT(PLAIN NAME A_IN), DNS_NXDOMAIN,
		     BYTES_LIT(HEADER("\x81\x83", "\1", "\0", "\0", "\0") NAME A_IN));
	check_answer(BYTES_LIT(HEADER("\0\0", "\1", "\0", "\0", "\0") NAME A_IN), DNS_NXDOMAIN,
		     BYTES_LIT(HEADER("\x80\x83", "\1", "\0", "\0", "\0") NAME A_IN));
	check_answer(BYTES_LIT(HEADER("\1\0", "\1", "\0", "\0", "\1") NAME A_IN OPT_WITH),
		     DNS_NXDOMAIN,
		     BYTES_LIT(HEADER("\x81\x83", "\1", "\0", "\0", "\1") NAME A_IN OPT));
	check_answer(BYTES_LIT(PLAIN NAME A_IN "x"), DNS_FORMERR,
		     BYTES_LIT(HEADER("\x81\x81", "\0", "\0", "\0", "\0")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(datagrams_are_told_apart),
		cmocka_unit_test(too_long_a_datagram_is_unreadable),
		cmocka_unit_test(answers_are_exactly_these),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
