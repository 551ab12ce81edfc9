/* test_agent_files.c - gzip, ranges, metadata: what /files is made of. */
#include "tests/unit/check.h"

#include "agent/files/file_metadata.h"
#include "agent/files/gunzip.h"
#include "agent/files/range.h"
#include "http/date.h"

/* --- gzip ----------------------------------------------------------------------------------- */

static const uint8_t hello[] = { 0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
				 0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x86,
				 0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00 };

static enum decode unzip(struct bytes in, size_t piece, struct buf *out, bool *ret_whole)
{
	struct gunzip *g = NULL;
	struct err err = { 0 };
	enum decode d = DECODE_MORE;

	assert_int_equal(gunzip_open(&g, &err), 0);
	while (in.len > 0 && d != DECODE_BAD) {
		struct bytes part = bytes_head(in, piece), span;

		in = bytes_tail(in, piece);
		while ((d = gunzip_next(g, &part, &span, &err)) == DECODE_OK)
			assert_int_equal(buf_add(out, span, &err), 0);
		assert_true(d == DECODE_BAD || part.len == 0);
	}
	*ret_whole = gunzip_is_whole(g);
	gunzip_close(g);
	return d;
}

static void gzip_in_pieces(void **state)
{
	struct bytes all = { hello, sizeof(hello) };

	(void)state;
	for (size_t piece = 1; piece <= all.len; piece++)
		for (size_t n = 0; n <= all.len; n++) {
			AUTO(buf_done) struct buf out = BUF_MAX(100);
			bool whole;

			assert_int_equal(unzip(bytes_head(all, n), piece, &out, &whole),
					 DECODE_MORE);
			assert_int_equal(whole, n == all.len);
			if (whole)
				assert_true(bytes_eq(buf_view(&out), BYTES_LIT("hello")));
		}
}

static void gzip_of_two_members(void **state)
{
	AUTO(buf_done) struct buf in = BUF_MAX(100), out = BUF_MAX(100);
	struct bytes one = { hello, sizeof(hello) };
	struct err err = { 0 };
	bool whole;

	(void)state;
	assert_int_equal(buf_add(&in, one, &err), 0);
	assert_int_equal(buf_add(&in, one, &err), 0);
	assert_int_equal(unzip(buf_view(&in), 7, &out, &whole), DECODE_MORE);
	assert_true(whole && bytes_eq(buf_view(&out), BYTES_LIT("hellohello")));
}

static void gzip_that_is_broken(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(hello); i++) {
		AUTO(buf_done) struct buf out = BUF_MAX(1000);
		uint8_t copy[sizeof(hello)];
		enum decode d;
		bool whole;

		if (i >= 3 && i <= 9) /* flags, time and system may be anything */
			continue;
		memcpy(copy, hello, sizeof(copy));
		copy[i] ^= 0x40;
		d = unzip((struct bytes){ copy, sizeof(copy) }, 100, &out, &whole);
		/* some bits mean nothing */
		assert_true(d == DECODE_BAD || !whole ||
			    bytes_eq(buf_view(&out), BYTES_LIT("hello")));
	}
}

/* --- ranges --------------------------------------------------------------------------------- */

static struct range ask(const char *name, const char *value, uint64_t size)
{
	struct http1_head h = { .n_fields = 1 };

	h.fields[0] = (struct http1_field){ bytes_str(name), bytes_str(value) };
	return range_of(&h, size, 784111777);
}

static void ranges(void **state)
{
	static const struct {
		const char *name, *value;
		uint64_t size;
		enum range_kind kind;
		uint64_t from, length;
	} rows[] = {
		{ "the first", "bytes=0-0", 10, RANGE_PART, 0, 1 },
		{ "the last", "bytes=9-9", 10, RANGE_PART, 9, 1 },
		{ "open", "bytes=3-", 10, RANGE_PART, 3, 7 },
		{ "too far", "bytes=3-18446744073709551615", 10, RANGE_PART, 3, 7 },
		{ "suffix", "bytes=-4", 10, RANGE_PART, 6, 4 },
		{ "long suffix", "bytes=-11", 10, RANGE_PART, 0, 10 },
		{ "empty suffix", "bytes=-0", 10, RANGE_NOT_SATISFIABLE, 0, 0 },
		{ "beyond", "bytes=10-", 10, RANGE_NOT_SATISFIABLE, 0, 0 },
		{ "reversed", "bytes=3-2", 10, RANGE_NOT_SATISFIABLE, 0, 0 },
		{ "overflow", "bytes=0-18446744073709551616", 10, RANGE_NOT_SATISFIABLE, 0, 0 },
		{ "nothing", "bytes=", 10, RANGE_NOT_SATISFIABLE, 0, 0 },
		{ "a dash", "bytes=-", 10, RANGE_NOT_SATISFIABLE, 0, 0 },
		{ "two", "bytes=0-1,2-3", 10, RANGE_ALL, 0, 10 },
		{ "an empty file", "bytes=0-", 0, RANGE_ALL, 0, 0 },
		{ "another unit", "lines=0-", 10, RANGE_NOT_SATISFIABLE, 0, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct range r = ask("Range", row->value, row->size);

		assert_int_equal(r.kind, row->kind);
		assert_int_equal(r.from, row->from);
		assert_int_equal(r.length, row->length);
	}
}

static void dates(void **state)
{
	static const struct {
		const char *name, *text;
		bool good;
		int64_t at;
	} rows[] = {
		{ "of the RFC", "Sun, 06 Nov 1994 08:49:37 GMT", true, 784111777 },
		{ "the first", "Thu, 01 Jan 1970 00:00:00 GMT", true, 0 },
		{ "the wrong day", "Mon, 06 Nov 1994 08:49:37 GMT", false, 0 },
		{ "no such day", "Sun, 31 Nov 1994 08:49:37 GMT", false, 0 },
		{ "no such hour", "Sun, 06 Nov 1994 24:49:37 GMT", false, 0 },
		{ "another form", "Sunday, 06-Nov-94 08:49:37 GMT", false, 0 },
		{ "another zone", "Sun, 06 Nov 1994 08:49:37 CET", false, 0 },
		{ "signs", "Sun, +6 Nov 1994 08:49:37 GMT", false, 0 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char text[HTTP_DATE_MAX];
		int64_t at;

		assert_int_equal(http_date_parse(bytes_str(row->text), &at), row->good);
		if (!row->good)
			continue;
		assert_int_equal(at, row->at);
		http_date_put(at, text);
		assert_string_equal(text, row->text);
	}
}

static void conditions(void **state)
{
	(void)state;
	assert_int_equal(ask("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT", 9).kind,
			 RANGE_NOT_MODIFIED);
	assert_int_equal(ask("if-modified-since", "Sun, 06 Nov 1994 08:49:36 GMT", 9).kind,
			 RANGE_ALL);
	assert_int_equal(ask("if-unmodified-since", "Sun, 06 Nov 1994 08:49:36 GMT", 9).kind,
			 RANGE_FAILED);
	assert_int_equal(ask("if-match", "\"x\"", 9).kind, RANGE_FAILED);
	assert_int_equal(ask("if-match", "*", 9).kind, RANGE_ALL);
	assert_int_equal(ask("if-none-match", "*", 9).kind, RANGE_NOT_MODIFIED);
}

/* --- metadata ------------------------------------------------------------------------------- */

static int note(const char *name, const char *value, json_t **ret, struct err *err)
{
	struct http1_head h = { .n_fields = 3 };

	h.fields[0] = (struct http1_field){ bytes_str(name), bytes_str(value) };
	h.fields[1] = (struct http1_field){ bytes_str(name), BYTES_LIT("second") };
	h.fields[2] = (struct http1_field){ BYTES_LIT("x-other"), BYTES_LIT("other") };
	return metadata_parse(&h, ret, err);
}

static void metadata_of_a_head(void **state)
{
	AUTO(json_decrefp) json_t *v = NULL;
	AUTO(buf_done) struct buf long_text = BUF_MAX(8192);
	uint8_t *room;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(note("X-Metadata-KeY", "Value", &v, &err), 0);
	assert_int_equal(json_object_size(v), 1);
	assert_string_equal(json_string_value(json_object_get(v, "key")), "Value");
	assert_int_equal(buf_reserve(&long_text, 4096, &room, &err), 0);
	memset(room, 'v', 4096);
	room[METADATA_TOTAL_MAX - 9 - 1 + 1] = '\0'; /* user.e2b. and one letter: one too many */
	assert_int_equal(note("X-Metadata-k", (char *)room, &v, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(note("X-Metadata-", "x", &v, &err), -1);
	assert_int_equal(note("X-Metadata-k", "\xc3\xbc", &v, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gzip_in_pieces),
		cmocka_unit_test(gzip_of_two_members),
		cmocka_unit_test(gzip_that_is_broken),
		cmocka_unit_test(ranges),
		cmocka_unit_test(dates),
		cmocka_unit_test(conditions),
		cmocka_unit_test(metadata_of_a_head),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
