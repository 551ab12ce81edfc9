/* test_wire_json.c - JSON within limits, and members that say what is wrong with them. */
#include "tests/unit/check.h"

#include "wire/json.h"

static void text_is_checked(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		const char *why; /* how the message begins: the rest is jansson's */
	} rows[] = {
		{ "object", BYTES_LIT("{}"), "" },
		{ "array", BYTES_LIT(" [1, 2.5, \"x\", null, true] \n"), "" },
		{ "as deep as allowed", BYTES_LIT("[[[[1]]]]"), "" },
		{ "many, but not deep", BYTES_LIT("[[],[],[],[],[],[]]"), "" },
		{ "brackets in a string", BYTES_LIT("[\"[[[[[[\"]"), "" },
		{ "quote in a string", BYTES_LIT("[\"\\\"[[[[[\"]"), "" },
		{ "backslash at the end of a string", BYTES_LIT("[\"\\\\\",[[[1]]]]"), "" },
		{ "too deep", BYTES_LIT("[[[[[1]]]]]"), "JSON nested deeper than 4" },
		{ "too deep after a string", BYTES_LIT("[\"\\\\\",[[[[1]]]]]"),
		  "JSON nested deeper than 4" },
		{ "too deep and broken", BYTES_LIT("{[{[{["), "JSON nested deeper than 4" },
		{ "too long", BYTES_LIT("[\"0123456789012345678901234567890123456789\"]"),
		  "JSON of 44 bytes, limit is 40" },
		{ "nothing", { 0 }, "JSON, line 1 column 0:" },
		{ "scalar", BYTES_LIT("1"), "JSON, line 1 column 1:" },
		{ "twice", BYTES_LIT("{\"a\":1,\"a\":2}"), "JSON, line 1 column 10:" },
		{ "rest", BYTES_LIT("{}\n x"), "JSON, line 2 column 2:" },
		{ "NUL in a string", BYTES_LIT("[\"\\u0000\"]"), "JSON, line 1 column 9:" },
		{ "NUL between", BYTES_LIT("[\0]"), "JSON, line 1 column 2:" },
		{ "not UTF-8", BYTES_LIT("[\"\xff\"]"), "JSON, line 1 column 2:" },
		{ "comma", BYTES_LIT("[1,]"), "JSON, line 1 column 4:" },
		{ "too big", BYTES_LIT("[9223372036854775808]"), "JSON, line 1 column 20:" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(json_decrefp) json_t *v = NULL;
		struct err err = { 0 };
		int r = json_decode(row->in, 40, 4, &v, &err);

		assert_memory_equal(err.msg, row->why, strlen(row->why));
		assert_int_equal(r, row->why[0] ? -1 : 0);
		assert_int_equal(v != NULL, r == 0);
	}
}

static void values_are_written_compact(void **state)
{
	AUTO(json_decrefp) json_t *v = NULL;
	AUTO(buf_done) struct buf out = BUF_MAX(64), small = BUF_MAX(5);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(json_decode(BYTES_LIT("{ \"a\": [1, \"\\u00e9/\"] }"), 99, 4, &v, &err),
			 0);
	assert_int_equal(buf_add(&out, BYTES_LIT("x"), &err), 0);
	assert_int_equal(json_encode(v, &out, &err), 0);
	assert_true(bytes_eq(buf_view(&out), BYTES_LIT("x{\"a\":[1,\"\xc3\xa9/\"]}")));
	assert_int_equal(json_encode(v, &small, &err), -1);
	assert_string_equal(err.msg, "write JSON: buffer limit of 5 bytes reached");
	assert_int_equal(small.len, 0);
	assert_int_equal(json_encode(NULL, &out, &err), -1);
	assert_string_equal(err.msg, "value has no JSON form");
}

/* However much room there is: what is short of it is not there at all. */
static void a_value_is_written_whole_or_not_at_all(void **state)
{
	const struct bytes whole = BYTES_LIT("{\"a\":{\"b\":[]},\"a long name\":1}");
	AUTO(json_decrefp) json_t *v = NULL;
	struct err err;

	(void)state;
	assert_int_equal(json_decode(whole, 99, 4, &v, &err), 0);
	for (size_t room = 0; room < whole.len + 2; room++) {
		AUTO(buf_done) struct buf out = BUF_MAX(room);

		assert_int_equal(json_encode(v, &out, &err), room < whole.len ? -1 : 0);
		assert_int_equal(out.len, room < whole.len ? 0 : whole.len);
	}
}

static json_t *sample(void)
{
	static const char text[] =
		"{\"s\":\"x\",\"i\":7,\"neg\":-9,\"digits\":\"-42\",\"min\":\"-"
		"9223372036854775808\","
		"\"over\":\"9223372036854775808\",\"plus\":\"+1\",\"real\":1.0,\"yes\":true,"
		"\"none\":null,"
		"\"obj\":{\"k\":1},\"arr\":[1],\"envVars\":{},\"start_time\":\"t\","
		"\"bothWays\":1,\"both_ways\":2}";
	json_t *v = NULL;
	struct err err = { 0 };

	assert_int_equal(json_decode(bytes_str(text), sizeof(text), 4, &v, &err), 0);
	return v;
}

static void strings_are_typed(void **state)
{
	AUTO(json_decrefp) json_t *v = sample();
	struct bytes s = BYTES_LIT("default");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(json_may_string(v, "absent", &s, &err), 0);
	assert_int_equal(json_may_string(v, "none", &s, &err), 0);
	assert_true(bytes_eq(s, BYTES_LIT("default")));
	assert_int_equal(json_want_string(v, "startTime", &s, &err), 0);
	assert_true(bytes_eq(s, BYTES_LIT("t")));
	assert_int_equal(json_want_string(v, "s", &s, &err), 0);
	assert_true(bytes_eq(s, BYTES_LIT("x")));
	assert_int_equal(json_want_string(v, "absent", &s, &err), -1);
	assert_string_equal(err.msg, "absent is missing");
	assert_int_equal(json_want_string(v, "none", &s, &err), -1);
	assert_string_equal(err.msg, "none is missing");
	assert_int_equal(json_may_string(v, "i", &s, &err), -1);
	assert_string_equal(err.msg, "i must be a string");
	assert_int_equal(json_may_string(v, "bothWays", &s, &err), -1);
	assert_string_equal(err.msg, "both bothWays and both_ways are given");
	assert_int_equal(json_may_string(json_object_get(v, "arr"), "s", &s, &err), -1);
	assert_string_equal(err.msg, "expected an object with s");
	assert_int_equal(json_may_string(NULL, "s", &s, &err), -1);
	assert_true(bytes_eq(s, BYTES_LIT("x")));
}

static void numbers_are_ranged(void **state)
{
	static const struct {
		const char *name; /* of the member too */
		int64_t min, max, want;
		bool ok;
	} rows[] = {
		{ "i", 7, 7, 7, true },
		{ "i", 8, 9, 0, false },
		{ "i", 0, 6, 0, false },
		{ "neg", -9, 0, -9, true },
		{ "digits", -100, 0, -42, true },
		{ "min", INT64_MIN, INT64_MAX, INT64_MIN, true },
		{ "over", INT64_MIN, INT64_MAX, 0, false },
		{ "plus", 0, 9, 0, false },
		{ "real", 0, 9, 0, false },
		{ "s", 0, 9, 0, false },
		{ "yes", 0, 9, 0, false },
		{ "obj", 0, 9, 0, false },
	};
	AUTO(json_decrefp) json_t *v = sample();
	struct err err = { 0 };
	int64_t n = 5;

	(void)state;
	FOR_ROWS(row, rows) {
		n = 0;
		assert_int_equal(json_want_int(v, row->name, row->min, row->max, &n, &err),
				 row->ok ? 0 : -1);
		assert_true(n == row->want);
		n = 0;
		assert_int_equal(json_may_int(v, row->name, row->min, row->max, &n, &err),
				 row->ok ? 0 : -1);
		assert_true(n == row->want);
	}
	assert_int_equal(json_want_int(v, "s", -1, 2, &n, &err), -1);
	assert_string_equal(err.msg, "s must be a whole number from -1 to 2");
	assert_int_equal(json_want_int(v, "s", INT64_MIN, INT64_MAX, &n, &err), -1);
	assert_string_equal(err.msg, "s must be a whole number"); /* of any size */
	n = 5;
	assert_int_equal(json_may_int(v, "absent", 0, 1, &n, &err), 0);
	assert_true(n == 5);
	assert_int_equal(json_want_int(v, "absent", 0, 1, &n, &err), -1);
}

static void flags_and_trees_are_typed(void **state)
{
	AUTO(json_decrefp) json_t *v = sample();
	json_t *tree = NULL;
	struct err err = { 0 };
	bool b = false;

	(void)state;
	assert_int_equal(json_want_bool(v, "yes", &b, &err), 0);
	assert_true(b);
	assert_int_equal(json_may_bool(v, "absent", &b, &err), 0);
	assert_true(b);
	assert_int_equal(json_want_bool(v, "absent", &b, &err), -1);
	assert_int_equal(json_may_bool(v, "i", &b, &err), -1);
	assert_string_equal(err.msg, "i must be true or false");
	assert_int_equal(json_may_object(v, "absent", &tree, &err), 0);
	assert_null(tree);
	assert_int_equal(json_want_object(v, "obj", &tree, &err), 0);
	assert_true(json_is_object(tree));
	assert_int_equal(json_want_array(v, "arr", &tree, &err), 0);
	assert_true(json_is_array(tree));
	assert_int_equal(json_want_array(v, "obj", &tree, &err), -1);
	assert_string_equal(err.msg, "obj must be an array");
	assert_int_equal(json_may_object(v, "arr", &tree, &err), -1);
	assert_string_equal(err.msg, "arr must be an object");
	assert_int_equal(json_may_array(v, "none", &tree, &err), 0);
	assert_int_equal(json_want_object(v, "none", &tree, &err), -1);
}

static void any_bytes_become_text(void **state)
{
	static const struct {
		const char *name;
		struct bytes in, want;
	} rows[] = {
		{ "empty", { 0 }, { 0 } },
		{ "plain", BYTES_LIT("abc"), BYTES_LIT("abc") },
		{ "UTF-8", BYTES_LIT("\xe2\x82\xac"), BYTES_LIT("\xe2\x82\xac") },
		{ "cut UTF-8", BYTES_LIT("a\xe2\x82"), BYTES_LIT("a??") },
		{ "surrogate", BYTES_LIT("\xed\xa0\x80"), BYTES_LIT("???") },
		{ "NUL", BYTES_LIT("a\0"), BYTES_LIT("a?") },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(json_decrefp) json_t *v = json_text(row->in);

		assert_true(bytes_eq(json_bytes(v), row->want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_is_checked),
		cmocka_unit_test(values_are_written_compact),
		cmocka_unit_test(a_value_is_written_whole_or_not_at_all),
		cmocka_unit_test(strings_are_typed),
		cmocka_unit_test(numbers_are_ranged),
		cmocka_unit_test(flags_and_trees_are_typed),
		cmocka_unit_test(any_bytes_become_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
