/* test_wire_base64.c - the vectors of RFC 4648, and what is refused. */
#include "tests/unit/check.h"

#include "wire/base64.h"

static void known_vectors_go_both_ways(void **state)
{
	static const struct {
		const char *name;
		struct bytes plain, text;
	} rows[] = {
		{ "empty", { 0 }, { 0 } },
		{ "f", BYTES_LIT("f"), BYTES_LIT("Zg==") },
		{ "fo", BYTES_LIT("fo"), BYTES_LIT("Zm8=") },
		{ "foo", BYTES_LIT("foo"), BYTES_LIT("Zm9v") },
		{ "foob", BYTES_LIT("foob"), BYTES_LIT("Zm9vYg==") },
		{ "fooba", BYTES_LIT("fooba"), BYTES_LIT("Zm9vYmE=") },
		{ "foobar", BYTES_LIT("foobar"), BYTES_LIT("Zm9vYmFy") },
		{ "all ones", BYTES_LIT("\xff\xff\xfe"), BYTES_LIT("///+") },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(64);
		struct err err = { 0 };

		assert_int_equal(base64_encode(row->plain, &out, &err), 0);
		assert_true(bytes_eq(buf_view(&out), row->text));
		buf_clear(&out);
		assert_int_equal(base64_decode(row->text, &out, &err), 0);
		assert_true(bytes_eq(buf_view(&out), row->plain));
	}
}

/* Long texts are made eight characters at a time. */
static void every_character_in_every_place(void **state)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				       "0123456789+/";
	uint8_t text[128];

	(void)state;
	for (size_t turn = 0; turn < 64; turn++) {
		for (size_t len = 4; len <= sizeof(text); len += 4) {
			AUTO(buf_done) struct buf plain = BUF_MAX(128), again = BUF_MAX(128);
			struct err err = { 0 };

			for (size_t i = 0; i < len; i++)
				text[i] = (uint8_t)alphabet[(i + turn) % 64];
			assert_int_equal(base64_decode((struct bytes){ text, len }, &plain, &err),
					 0);
			assert_int_equal(base64_encode(buf_view(&plain), &again, &err), 0);
			assert_true(bytes_eq(buf_view(&again), (struct bytes){ text, len }));
		}
	}
}

#define LENGTH "base64 of an impossible length"

static void decoding_is_lenient_where_told_and_strict_otherwise(void **state)
{
	static const struct {
		const char *name;
		struct bytes text, plain;
		const char *why;
	} rows[] = {
		{ "no padding, 1", BYTES_LIT("Zg"), BYTES_LIT("f"), "" },
		{ "no padding, 2", BYTES_LIT("Zm8"), BYTES_LIT("fo"), "" },
		{ "url-safe", BYTES_LIT("__-_"), BYTES_LIT("\xff\xff\xbf"), "" },
		{ "standard", BYTES_LIT("//+/"), BYTES_LIT("\xff\xff\xbf"), "" },
		{ "both alphabets", BYTES_LIT("/_++"), { 0 }, "base64 in two alphabets at once" },
		{ "one character", BYTES_LIT("Z"), { 0 }, LENGTH },
		{ "five characters", BYTES_LIT("Zm9vY"), { 0 }, LENGTH },
		{ "half padding", BYTES_LIT("Zg="), { 0 }, LENGTH },
		{ "padding alone", BYTES_LIT("="), { 0 }, LENGTH },
		{ "padding of padding", BYTES_LIT("===="), { 0 }, "malformed base64 near byte 0" },
		{ "three padding", BYTES_LIT("Z==="), { 0 }, "malformed base64 near byte 0" },
		{ "padding too many", BYTES_LIT("Zm9v="), { 0 }, LENGTH },
		{ "padding inside", BYTES_LIT("Zg==Zg=="), { 0 }, "malformed base64 near byte 0" },
		{ "stray bits, 1", BYTES_LIT("Zh=="), { 0 }, "malformed base64 near byte 0" },
		{ "stray bits, 2", BYTES_LIT("Zm9="), { 0 }, "malformed base64 near byte 0" },
		{ "newline", BYTES_LIT("Zm9v\n"), { 0 }, LENGTH },
		{ "blank", BYTES_LIT("Zm9vZm 9"), { 0 }, "malformed base64 near byte 4" },
		{ "NUL", BYTES_LIT("Zm\0v"), { 0 }, "malformed base64 near byte 0" },
		{ "high byte", BYTES_LIT("Zm9\xff"), { 0 }, "malformed base64 near byte 0" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(64);
		struct err err = { 0 };
		int r = base64_decode(row->text, &out, &err);

		assert_string_equal(err.msg, row->why);
		assert_int_equal(r, row->why[0] ? -1 : 0);
		assert_true(bytes_eq(buf_view(&out), row->plain));
	}
}

static void the_buffer_is_the_limit(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(5);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(base64_decode(BYTES_LIT("Zm9vYmFy"), &out, &err), -1);
	assert_string_equal(err.msg, "decode base64: buffer limit of 5 bytes reached");
	assert_int_equal(base64_decode(BYTES_LIT("Zm9vYmE="), &out, &err), 0);
	assert_int_equal(out.len, 5);
	buf_clear(&out);
	assert_int_equal(base64_encode(BYTES_LIT("abcd"), &out, &err), -1);
	assert_int_equal(base64_encode((struct bytes){ (const uint8_t *)"", SIZE_MAX }, &out, &err),
			 -1);
	assert_int_equal(out.len, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_vectors_go_both_ways),
		cmocka_unit_test(every_character_in_every_place),
		cmocka_unit_test(decoding_is_lenient_where_told_and_strict_otherwise),
		cmocka_unit_test(the_buffer_is_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
