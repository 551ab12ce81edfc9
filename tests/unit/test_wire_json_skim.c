/* test_wire_json_skim.c - members of objects, strings in pieces, and what is refused. */
#include "tests/unit/check.h"

#include "wire/json_skim.h"

static int skim(const char *text, struct json_span *ret, struct err *err)
{
	return json_skim(bytes_str(text), ret, err);
}

static void members_are_found_as_they_are_written(void **state)
{
	struct json_span m[JSON_SKIM_MEMBERS_MAX];
	struct err err = { 0 };

	(void)state;
	assert_int_equal(
		skim(" {\"a\" : [1, {\"b\":\"}\"}] ,\"c\\n\":-0.5e+3, \"\":null}\n", m, &err), 3);
	assert_true(bytes_eq(m[0].name, BYTES_LIT("a")));
	assert_true(bytes_eq(m[0].value, BYTES_LIT("[1, {\"b\":\"}\"}]")));
	assert_true(bytes_eq(m[1].name, BYTES_LIT("c\\n")));
	assert_true(bytes_eq(m[1].value, BYTES_LIT("-0.5e+3")));
	assert_true(bytes_eq(m[2].value, BYTES_LIT("null")));
	assert_int_equal(skim("{}", m, &err), 0);
}

static void what_is_no_object_is_refused(void **state)
{
	static const struct {
		const char *name, *text, *why;
	} rows[] = {
		{ "nothing", "", "byte 0: not an object" },
		{ "array", "[]", "byte 0: not an object" },
		{ "no end", "{\"a\":1", "byte 6: no comma" },
		{ "no end of a string", "{\"a", "byte 3: a string without an end" },
		{ "comma at the end", "{\"a\":1,}", "byte 7: no name" },
		{ "comma at the end of an array", "{\"a\":[1,]}", "byte 8: no value" },
		{ "wrong bracket", "{\"a\":[1}", "byte 7: no comma" },
		{ "no colon", "{\"a\" 1}", "byte 5: no colon" },
		{ "half a number", "{\"a\":1.}", "byte 7: no digits behind a point" },
		{ "half an exponent", "{\"a\":1e+}", "byte 8: no digits in an exponent" },
		{ "a zero before", "{\"a\":01}", "byte 6: no comma" },
		{ "a word", "{\"a\":tru}", "byte 5: no value" },
		{ "twice", "{\"a\":1,\"a\":2}", "byte 11: a member given twice" },
		{ "a newline in a string", "{\"a\":\"\n\"}",
		  "byte 6: a control character in a string" },
		{ "half a pair", "{\"a\":\"\\ud800x\"}", "byte 6: an escape that is none" },
		{ "the second half", "{\"a\":\"\\udc00\"}", "byte 6: an escape that is none" },
		{ "a long form", "{\"a\":\"\xc0\xaf\"}", "byte 6: not UTF-8" },
		{ "a surrogate", "{\"a\":\"\xed\xa0\x80\"}", "byte 6: not UTF-8" },
		{ "beyond Unicode", "{\"a\":\"\xf4\x90\x80\x80\"}", "byte 6: not UTF-8" },
		{ "behind it", "{} {}", "byte 3: something behind the object" },
	};
	struct json_span m[JSON_SKIM_MEMBERS_MAX];

	(void)state;
	FOR_ROWS(row, rows) {
		struct err err = { 0 };

		assert_int_equal(skim(row->text, m, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_string_equal(err.msg + strlen("JSON, "), row->why);
	}
}

/* {"a":[[[...]]]}: `depth` levels, the object one of them. */
static int nested(size_t depth, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(4096);
	struct json_span m[JSON_SKIM_MEMBERS_MAX];

	assert_int_equal(buf_add(&text, BYTES_LIT("{\"a\":"), err), 0);
	for (size_t i = 1; i < depth; i++)
		assert_int_equal(buf_add(&text, BYTES_LIT("["), err), 0);
	for (size_t i = 1; i < depth; i++)
		assert_int_equal(buf_add(&text, BYTES_LIT("]"), err), 0);
	assert_int_equal(buf_add(&text, BYTES_LIT("}"), err), 0);
	return json_skim(buf_view(&text), m, err);
}

static void depth_and_members_are_bounded(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(4096);
	struct json_span m[JSON_SKIM_MEMBERS_MAX];
	struct err err = { 0 };

	(void)state;
	assert_int_equal(nested(JSON_SKIM_DEPTH_MAX, &err), 1);
	assert_int_equal(nested(JSON_SKIM_DEPTH_MAX + 1, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	for (int i = 0; i <= JSON_SKIM_MEMBERS_MAX; i++)
		assert_int_equal(buf_printf(&text, &err, "%s\"%d\":0", i ? "," : "{", i), 0);
	assert_int_equal(buf_add(&text, BYTES_LIT("}"), &err), 0);
	assert_int_equal(json_skim(buf_view(&text), m, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
}

static void a_string_comes_in_pieces_of_whole_characters(void **state)
{
	static const char raw[] =
		"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\xc3\xa9\\u20ac\\ud83d\\ude00z";
	static const uint8_t plain[] =
		"a\"\\/\b\f\n\r\t\0\xc3\xa9\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
	uint8_t all[sizeof(plain)], piece[sizeof(plain)];

	(void)state;
	for (size_t size = JSON_SKIM_CHARACTER; size <= sizeof(piece); size++) {
		struct bytes text = bytes_str(raw);
		size_t n, made = 0;

		while ((n = json_skim_take(&text, piece, size)) > 0) {
			assert_true(made + n <= sizeof(all));
			memcpy(all + made, piece, n);
			made += n;
			assert_true(text.len == 0 || (text.ptr[0] & 0xc0) != 0x80);
		}
		assert_int_equal(made, sizeof(plain) - 1);
		assert_memory_equal(all, plain, made);
	}
}

static void only_a_string_is_one(void **state)
{
	struct bytes text = { 0 };

	(void)state;
	assert_true(json_skim_string(BYTES_LIT("\"a b\""), &text));
	assert_true(bytes_eq(text, BYTES_LIT("a b")));
	assert_false(json_skim_string(BYTES_LIT("12"), &text));
	assert_false(json_skim_string(BYTES_LIT("[\"a\"]"), &text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_found_as_they_are_written),
		cmocka_unit_test(what_is_no_object_is_refused),
		cmocka_unit_test(depth_and_members_are_bounded),
		cmocka_unit_test(a_string_comes_in_pieces_of_whole_characters),
		cmocka_unit_test(only_a_string_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
