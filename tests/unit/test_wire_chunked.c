/* test_wire_chunked.c - the chunked coding: all splits read alike, and nothing loose is read. */
#include "tests/unit/check.h"

#include "wire/chunked.h"

/* Feed `in` in pieces of at most `piece` bytes and collect the payload. */
static enum decode feed(struct bytes in, size_t piece, struct buf *body, size_t *ret_used,
			struct err *err)
{
	struct chunked c = { 0 };
	size_t used = 0;

	while (used < in.len) {
		struct bytes part = bytes_head(bytes_tail(in, used), piece), span, left = part;
		enum decode got;

		while ((got = chunked_next(&c, &left, &span, err)) == DECODE_OK && span.len > 0)
			assert_int_equal(buf_add(body, span, err), 0);
		used += part.len - left.len;
		*ret_used = used;
		if (got != DECODE_MORE)
			return got;
		assert_int_equal(left.len, 0);
	}
	return DECODE_MORE;
}

#define SIZE "malformed chunk size"
#define LINE "malformed end of a line in chunked coding"
#define OVER "chunk size over 16 digits"

static const struct {
	const char *name;
	struct bytes in;
	enum decode want;
	size_t used;
	struct bytes body;
	const char *why;
} rows[] = {
	{ "nothing", { 0 }, DECODE_MORE, 0, { 0 }, "" },
	{ "empty body", BYTES_LIT("0\r\n\r\n"), DECODE_OK, 5, { 0 }, "" },
	{ "many zeros", BYTES_LIT("000\r\n\r\nX"), DECODE_OK, 7, { 0 }, "" },
	{ "one", BYTES_LIT("3\r\nabc\r\n0\r\n\r\n"), DECODE_OK, 13, BYTES_LIT("abc"), "" },
	{ "two, and more", BYTES_LIT("1\r\na\r\nA\r\n0123456789\r\n0\r\n\r\nGET"), DECODE_OK, 26,
	  BYTES_LIT("a0123456789"), "" },
	{ "hexadecimal", BYTES_LIT("0B\r\n0123456789a\r\n0\r\n\r\n"), DECODE_OK, 22,
	  BYTES_LIT("0123456789a"), "" },
	{ "more digits than one size may have",
	  BYTES_LIT("001\r\na\r\n001\r\nb\r\n001\r\nc\r\n001\r\nd\r\n001\r\ne\r\n001\r\nf\r\n0\r\n"
		    "\r\n"),
	  DECODE_OK, 53, BYTES_LIT("abcdef"), "" },
	{ "payload that looks like coding", BYTES_LIT("5\r\n0\r\n\r\n\r\n0\r\n\r\n"), DECODE_OK, 15,
	  BYTES_LIT("0\r\n\r\n"), "" },
	{ "trailers", BYTES_LIT("0\r\nA: b\r\nC:\r\n\r\n"), DECODE_OK, 15, { 0 }, "" },
	{ "no end yet", BYTES_LIT("3\r\nab"), DECODE_MORE, 5, BYTES_LIT("ab"), "" },
	{ "last LF missing", BYTES_LIT("0\r\n\r"), DECODE_MORE, 4, { 0 }, "" },
	{ "16 digits", BYTES_LIT("FFFFFFFFFFFFFFFF\r\nab"), DECODE_MORE, 20, BYTES_LIT("ab"), "" },
	{ "17 digits", BYTES_LIT("10000000000000000\r\n"), DECODE_BAD, 16, { 0 }, OVER },
	{ "17 zeros", BYTES_LIT("00000000000000000\r\n"), DECODE_BAD, 16, { 0 }, OVER },
	{ "no digits", BYTES_LIT("\r\n"), DECODE_BAD, 0, { 0 }, SIZE },
	{ "sign", BYTES_LIT("+3\r\nabc"), DECODE_BAD, 0, { 0 }, SIZE },
	{ "minus", BYTES_LIT("-1\r\nabc"), DECODE_BAD, 0, { 0 }, SIZE },
	{ "0x", BYTES_LIT("0x3\r\nabc"), DECODE_BAD, 1, { 0 }, SIZE },
	{ "blank before", BYTES_LIT(" 3\r\nabc"), DECODE_BAD, 0, { 0 }, SIZE },
	{ "blank after", BYTES_LIT("3 \r\nabc"), DECODE_BAD, 1, { 0 }, SIZE },
	{ "NUL", BYTES_LIT("3\0\r\nabc"), DECODE_BAD, 1, { 0 }, SIZE },
	{ "extension",
	  BYTES_LIT("3;a=b\r\nabc"),
	  DECODE_BAD,
	  1,
	  { 0 },
	  "chunk extensions are refused" },
	{ "bare LF after size", BYTES_LIT("3\nabc"), DECODE_BAD, 1, { 0 }, SIZE },
	{ "bare CR after size", BYTES_LIT("3\rabc"), DECODE_BAD, 2, { 0 }, LINE },
	{ "bare LF after data", BYTES_LIT("3\r\nabc\n"), DECODE_BAD, 6, BYTES_LIT("abc"), LINE },
	{ "chunk too long", BYTES_LIT("3\r\nabcd\r\n"), DECODE_BAD, 6, BYTES_LIT("abc"), LINE },
	{ "chunk too short", BYTES_LIT("3\r\nab\r\n0\r\n"), DECODE_BAD, 6, BYTES_LIT("ab\r"),
	  LINE },
	{ "bare LF at the end", BYTES_LIT("0\r\n\n"), DECODE_BAD, 3, { 0 }, "malformed trailer" },
	{ "CR at the end", BYTES_LIT("0\r\n\rX"), DECODE_BAD, 4, { 0 }, LINE },
	{ "request in the trailer",
	  BYTES_LIT("0\r\nGET / HTTP/1.1\r\n"),
	  DECODE_BAD,
	  6,
	  { 0 },
	  "malformed trailer" },
	{ "trailer folded",
	  BYTES_LIT("0\r\nA: b\r\n c\r\n"),
	  DECODE_BAD,
	  9,
	  { 0 },
	  "malformed trailer" },
	{ "trailer with NUL",
	  BYTES_LIT("0\r\nA: \0\r\n"),
	  DECODE_BAD,
	  6,
	  { 0 },
	  "malformed trailer" },
	{ "trailer, bare LF",
	  BYTES_LIT("0\r\nA: b\nC"),
	  DECODE_BAD,
	  7,
	  { 0 },
	  "malformed trailer" },
	{ "trailer, bare CR", BYTES_LIT("0\r\nA: b\rC"), DECODE_BAD, 8, { 0 }, LINE },
	{ "trailer without a name",
	  BYTES_LIT("0\r\n: b\r\n"),
	  DECODE_BAD,
	  3,
	  { 0 },
	  "malformed trailer" },
};

static void every_split_reads_the_same(void **state)
{
	(void)state;
	FOR_ROWS(row, rows) {
		for (size_t piece = 1; piece <= row->in.len + 1; piece++) {
			AUTO(buf_done) struct buf body = BUF_MAX(64);
			struct err err = { 0 };
			size_t used = 0;

			assert_int_equal(feed(row->in, piece, &body, &used, &err), row->want);
			assert_int_equal(used, row->used);
			assert_true(bytes_eq(buf_view(&body), row->body));
			assert_string_equal(err.msg, row->why);
		}
	}
}

static void a_trailer_has_an_end(void **state)
{
	struct chunked c = { 0 };
	struct err err = { 0 };
	struct bytes in = BYTES_LIT("0\r\nA:"), span;
	size_t n = 0;

	(void)state;
	assert_int_equal(chunked_next(&c, &in, &span, &err), DECODE_MORE);
	while (n++ < CHUNKED_TRAILER_MAX + 9) {
		in = BYTES_LIT("x");
		if (chunked_next(&c, &in, &span, &err) == DECODE_BAD)
			break;
	}
	assert_int_equal(n, CHUNKED_TRAILER_MAX - 2 + 1);
	assert_string_equal(err.msg, "trailer over 8192 bytes");
}

static void short_trailer_lines_count_whole(void **state)
{
	struct chunked c = { 0 };
	struct err err = { 0 };
	struct bytes in = BYTES_LIT("0\r\n"), span;
	enum decode got = chunked_next(&c, &in, &span, &err);
	size_t n = 0;

	(void)state;
	while (got == DECODE_MORE && n++ < CHUNKED_TRAILER_MAX) {
		in = BYTES_LIT("a:\r\n");
		got = chunked_next(&c, &in, &span, &err);
	}
	assert_int_equal(got, DECODE_BAD);
	assert_int_equal(n, CHUNKED_TRAILER_MAX / 4 + 1);
}

static void the_end_stays_the_end(void **state)
{
	struct chunked c = { 0 };
	struct err err = { 0 };
	struct bytes in = BYTES_LIT("0\r\n\r\nnext"), span;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(chunked_next(&c, &in, &span, &err), DECODE_OK);
		assert_int_equal(span.len, 0);
		assert_true(bytes_eq(in, BYTES_LIT("next")));
	}
}

static void chunks_are_written(void **state)
{
	AUTO(buf_done) struct buf b = BUF_MAX(256);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(chunked_put_head(&b, 26, &err), 0);
	assert_int_equal(buf_add(&b, BYTES_LIT("abcdefghijklmnopqrstuvwxyz"), &err), 0);
	assert_int_equal(chunked_put_tail(&b, &err), 0);
	assert_int_equal(chunked_put_last(&b, &err), 0);
	assert_true(
		bytes_eq(buf_view(&b), BYTES_LIT("1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n")));
}

static void a_front_has_one_length(void **state)
{
	static const struct {
		const char *name;
		size_t n;
		struct bytes want;
	} fronts[] = {
		{ "one", 1, BYTES_LIT("00000001\r\n") },
		{ "many", 0x1abcd, BYTES_LIT("0001abcd\r\n") },
		{ "most", UINT32_MAX, BYTES_LIT("ffffffff\r\n") },
	};

	(void)state;
	FOR_ROWS(row, fronts) {
		uint8_t front[CHUNKED_FRONT];

		chunked_fill_front(front, row->n);
		assert_true(bytes_eq((struct bytes){ front, sizeof(front) }, row->want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_split_reads_the_same),
		cmocka_unit_test(a_trailer_has_an_end),
		cmocka_unit_test(short_trailer_lines_count_whole),
		cmocka_unit_test(the_end_stays_the_end),
		cmocka_unit_test(chunks_are_written),
		cmocka_unit_test(a_front_has_one_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
