/* test_wire_target.c - paths cut before they are decoded, parameters looked up after. */
#include "tests/unit/check.h"

#include "wire/target.h"

static void targets_are_split(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		const char *path, *query, *why;
	} rows[] = {
		{ "root", BYTES_LIT("/"), "/", "", "" },
		{ "path and query", BYTES_LIT("/a/b?c=d&e"), "/a/b", "c=d&e", "" },
		{ "empty query", BYTES_LIT("/a?"), "/a", "", "" },
		{ "question in the query", BYTES_LIT("/a?b?c"), "/a", "b?c", "" },
		{ "absolute", BYTES_LIT("http://h:1/a?b"), "/a", "b", "" },
		{ "absolute, https", BYTES_LIT("HTTPS://h/a"), "/a", "", "" },
		{ "absolute, no path", BYTES_LIT("http://h"), "/", "", "" },
		{ "absolute, only a query", BYTES_LIT("http://h?a/b"), "/", "a/b", "" },
		{ "two slashes are no scheme", BYTES_LIT("//h/a"), "//h/a", "", "" },
		{ "nothing", { 0 }, NULL, NULL, "target without a path" },
		{ "asterisk", BYTES_LIT("*"), NULL, NULL, "target without a path" },
		{ "authority", BYTES_LIT("h:1"), NULL, NULL, "target without a path" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct target t;
		struct err err = { 0 };

		assert_int_equal(target_split(row->in, &t, &err), row->path ? 0 : -1);
		assert_string_equal(err.msg, row->why);
		if (!row->path)
			continue;
		assert_true(bytes_eq(t.path, bytes_str(row->path)));
		assert_true(bytes_eq(t.query, bytes_str(row->query)));
	}
}

/* The decoded segments, each after a '|'. */
static int join_segments(struct bytes path, struct buf *out, struct err *err)
{
	struct bytes raw;

	while (target_next_segment(&path, &raw))
		if (buf_add(out, BYTES_LIT("|"), err) < 0 ||
		    target_decode_segment(raw, out, err) < 0)
			return -1;
	return 0;
}

static void segments_are_cut_then_decoded(void **state)
{
	static const struct {
		const char *name;
		struct bytes path, want;
		const char *why;
	} rows[] = {
		{ "root", BYTES_LIT("/"), BYTES_LIT("|"), "" },
		{ "two", BYTES_LIT("/a/b"), BYTES_LIT("|a|b"), "" },
		{ "slash at the end", BYTES_LIT("/a/"), BYTES_LIT("|a|"), "" },
		{ "empty inside", BYTES_LIT("//a"), BYTES_LIT("||a"), "" },
		{ "encoded slash", BYTES_LIT("/a%2Fb/c"), BYTES_LIT("|a/b|c"), "" },
		{ "encoded percent", BYTES_LIT("/%252F"), BYTES_LIT("|%2F"), "" },
		{ "plus is a plus", BYTES_LIT("/a+b"), BYTES_LIT("|a+b"), "" },
		{ "bytes", BYTES_LIT("/%c3%A9%ff"), BYTES_LIT("|\xc3\xa9\xff"), "" },
		{ "three dots", BYTES_LIT("/..."), BYTES_LIT("|..."), "" },
		{ "dot", BYTES_LIT("/a/./b"), { 0 }, "dots as a path segment" },
		{ "dots", BYTES_LIT("/a/.."), { 0 }, "dots as a path segment" },
		{ "encoded dots", BYTES_LIT("/%2e%2E/b"), { 0 }, "dots as a path segment" },
		{ "encoded NUL", BYTES_LIT("/a%00"), { 0 }, "NUL in the target" },
		{ "half an escape", BYTES_LIT("/a%2"), { 0 }, "broken escape in the target" },
		{ "escape over a slash",
		  BYTES_LIT("/a%2/b"),
		  { 0 },
		  "broken escape in the target" },
		{ "not hexadecimal", BYTES_LIT("/a%g0"), { 0 }, "broken escape in the target" },
		{ "signed", BYTES_LIT("/a%+1"), { 0 }, "broken escape in the target" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(64);
		struct err err = { 0 };
		int r = join_segments(row->path, &out, &err);

		assert_string_equal(err.msg, row->why);
		assert_int_equal(r, row->why[0] ? -1 : 0);
		if (r == 0)
			assert_true(bytes_eq(buf_view(&out), row->want));
	}
}

static void a_segment_is_bounded_and_a_refusal_leaves_no_trace(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(4096), small = BUF_MAX(3);
	uint8_t raw[TARGET_SEGMENT_MAX + 1];
	struct err err = { 0 };

	(void)state;
	memset(raw, 'a', sizeof(raw));
	assert_int_equal(target_decode_segment((struct bytes){ raw, sizeof(raw) }, &out, &err), -1);
	assert_string_equal(err.msg, "path segment over 256 bytes");
	assert_int_equal(out.len, 0);
	assert_int_equal(
		target_decode_segment((struct bytes){ raw, TARGET_SEGMENT_MAX }, &out, &err), 0);
	assert_int_equal(out.len, TARGET_SEGMENT_MAX);
	assert_int_equal(target_decode_segment(BYTES_LIT("abcd"), &small, &err), -1);
	assert_int_equal(small.len, 0);
	assert_int_equal(target_decode_segment(BYTES_LIT("%61%62%63"), &small, &err), 0);
	assert_int_equal(small.len, 3);
	assert_int_equal(target_decode_param(BYTES_LIT("%61%zz"), &out, &err), -1);
	assert_int_equal(out.len, TARGET_SEGMENT_MAX);
}

static void parameters_are_found(void **state)
{
	static const struct {
		const char *name;
		struct bytes query;
		bool found;
		struct bytes want;
		const char *why;
	} rows[] = {
		{ "nothing", { 0 }, false, { 0 }, "" },
		{ "alone", BYTES_LIT("path=x"), true, BYTES_LIT("x"), "" },
		{ "among others", BYTES_LIT("a=1&path=/x/y&b"), true, BYTES_LIT("/x/y"), "" },
		{ "no value", BYTES_LIT("path"), true, { 0 }, "" },
		{ "empty value", BYTES_LIT("path=&a=1"), true, { 0 }, "" },
		{ "equals in the value", BYTES_LIT("path=a=b"), true, BYTES_LIT("a=b"), "" },
		{ "plus and escapes", BYTES_LIT("path=a+b%2Bc%26d"), true, BYTES_LIT("a b+c&d"),
		  "" },
		{ "encoded name", BYTES_LIT("%70at%68=x"), true, BYTES_LIT("x"), "" },
		{ "longer name", BYTES_LIT("paths=x"), false, { 0 }, "" },
		{ "shorter name", BYTES_LIT("pat=x"), false, { 0 }, "" },
		{ "case counts", BYTES_LIT("Path=x"), false, { 0 }, "" },
		{ "empty pairs", BYTES_LIT("&&=&path=x&"), true, BYTES_LIT("x"), "" },
		{ "twice",
		  BYTES_LIT("path=x&%70ath=y"),
		  false,
		  { 0 },
		  "query parameter path is given twice" },
		{ "NUL",
		  BYTES_LIT("path=%00"),
		  false,
		  { 0 },
		  "query parameter path: NUL in the target" },
		{ "broken",
		  BYTES_LIT("path=%"),
		  false,
		  { 0 },
		  "query parameter path: broken escape in the target" },
		{ "broken other name",
		  BYTES_LIT("%zz=1&path=x"),
		  false,
		  { 0 },
		  "broken escape in the target" },
		{ "broken other value is not ours", BYTES_LIT("a=%zz&path=x"), true, BYTES_LIT("x"),
		  "" },
		{ "too long",
		  BYTES_LIT("path=0123456789abcdef0"),
		  false,
		  { 0 },
		  "query parameter path: decode the target: buffer limit of 16 bytes reached" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(16);
		struct err err = { 0 };
		bool found = false;
		int r = target_find_param(row->query, "path", &out, &found, &err);

		assert_string_equal(err.msg, row->why);
		assert_int_equal(r, row->why[0] ? -1 : 0);
		assert_int_equal(found, row->found);
		assert_true(bytes_eq(buf_view(&out), row->want));
	}
}

static void there_are_only_so_many_parameters(void **state)
{
	AUTO(buf_done) struct buf query = BUF_MAX(1024), out = BUF_MAX(16);
	struct err err = { 0 };
	bool found = true;

	(void)state;
	for (int i = 0; i < TARGET_PARAMS_MAX; i++)
		assert_int_equal(buf_add(&query, BYTES_LIT("a&"), &err), 0);
	assert_int_equal(target_find_param(buf_view(&query), "b", &out, &found, &err), 0);
	assert_false(found);
	assert_int_equal(buf_add(&query, BYTES_LIT("a"), &err), 0);
	assert_int_equal(target_find_param(buf_view(&query), "b", &out, &found, &err), -1);
	assert_string_equal(err.msg, "more than 64 query parameters");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_are_split),
		cmocka_unit_test(segments_are_cut_then_decoded),
		cmocka_unit_test(a_segment_is_bounded_and_a_refusal_leaves_no_trace),
		cmocka_unit_test(parameters_are_found),
		cmocka_unit_test(there_are_only_so_many_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
