/* test_wire_signature.c - signed URLs: what is signed, by whom, and what the query says. */
#include "tests/unit/check.h"

#include "wire/files_query.h"

static const struct bytes token = BYTES_LIT("0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0");

static void the_known_signature(void **state)
{
	const struct signed_url u = { BYTES_LIT("hello.txt"), BYTES_LIT("read"), BYTES_LIT("user"),
				      false, 0 };
	char text[SIGNATURE_TEXT_MAX];

	(void)state;
	signature_make(&u, token, text);
	assert_string_equal(text, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
	assert_true(signature_is_shaped(bytes_str(text)));
}

static void signatures_end(void **state)
{
	struct signed_url u = { BYTES_LIT("x"), BYTES_LIT("write"), BYTES_LIT(""), true, 1000 };
	char text[SIGNATURE_TEXT_MAX];
	struct err err = { 0 };

	(void)state;
	signature_make(&u, token, text);
	assert_int_equal(signature_check(&u, token, bytes_str(text), 1000, &err), 0);
	assert_int_equal(signature_check(&u, token, bytes_str(text), 1001, &err), -1);
	assert_string_equal(err.msg, "signature is already expired");
	u.expiration = 1001;
	assert_int_equal(signature_check(&u, token, bytes_str(text), 1000, &err), -1);
	assert_string_equal(err.msg, "invalid signature");
	u.has_expiration = false;
	assert_int_equal(signature_check(&u, token, bytes_str(text), 1000, &err), -1);
	assert_int_equal(signature_check(&u, token, BYTES_LIT(""), 1000, &err), -1);
}

static void shapes(void **state)
{
	static const struct {
		const char *name, *text;
		bool good;
	} rows[] = {
		{ "good", "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E", true },
		{ "wrong, but shaped", "v1_0000000000000000000000000000000000000000000", true },
		{ "empty", "", false },
		{ "the prefix", "v1_", false },
		{ "padded", "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E=", false },
		{ "another version", "v2_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E", false },
	};

	(void)state;
	FOR_ROWS(row, rows)
		assert_int_equal(signature_is_shaped(bytes_str(row->text)), row->good);
}

static void one_beginning_serves_many_tokens(void **state)
{
	const struct signed_url u = { BYTES_LIT("a/b"), BYTES_LIT("read"), BYTES_LIT(""), true, 7 };
	static const char *const tokens[] = { "", "a", "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0" };
	char one[SIGNATURE_TEXT_MAX], two[SIGNATURE_TEXT_MAX];
	struct sha256 begun;

	(void)state;
	signature_begin(&u, &begun);
	for (size_t i = 0; i < COUNT(tokens); i++) {
		signature_end(&begun, &u, bytes_str(tokens[i]), one);
		signature_make(&u, bytes_str(tokens[i]), two);
		assert_string_equal(one, two);
	}
}

static void queries(void **state)
{
	AUTO(files_query_done) struct files_query q = { 0 };
	struct err err = { 0 };
	struct signed_url u;

	(void)state;
	assert_int_equal(files_query_parse(BYTES_LIT("path=a%2Fb+c&x=1&signature=v1_%2B%2F"
						     "&signature_expiration=12&username=root"),
					   &q, &err),
			 0);
	assert_true(q.has_path && q.has_signature);
	assert_true(bytes_eq(buf_view(&q.signature), BYTES_LIT("v1_+/")));
	assert_int_equal(files_query_signed(&q, "write", &u, &err), 0);
	assert_true(bytes_eq(u.path, BYTES_LIT("a/b c")));
	assert_true(bytes_eq(u.user, BYTES_LIT("root")));
	assert_true(bytes_eq(u.operation, BYTES_LIT("write")));
	assert_true(u.has_expiration);
	assert_int_equal(u.expiration, 12);
}

static void queries_that_are_refused(void **state)
{
	static const struct {
		const char *name, *query;
		bool parsed; /* only the expiration is wrong */
	} rows[] = {
		{ "twice", "path=a&path=a", false },
		{ "two signatures", "signature=a&signature=b", false },
		{ "a NUL", "path=%00", false },
		{ "broken", "path=%2", false },
		{ "a long number", "signature_expiration=000000000000000000000000000000001",
		  false },
		{ "no number", "signature_expiration=1x", true },
		{ "below zero", "signature_expiration=-1", true },
		{ "empty", "signature_expiration=", true },
		{ "too large", "signature_expiration=9223372036854775808", true },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(files_query_done) struct files_query q = { 0 };
		struct err err = { 0 };
		struct signed_url u;
		int rc = files_query_parse(bytes_str(row->query), &q, &err);

		assert_int_equal(rc, row->parsed ? 0 : -1);
		if (row->parsed)
			assert_int_equal(files_query_signed(&q, "read", &u, &err), -1);
		assert_true(err.code == ERR_INVALID || err.code == ERR_EXHAUSTED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_known_signature),
		cmocka_unit_test(signatures_end),
		cmocka_unit_test(shapes),
		cmocka_unit_test(one_beginning_serves_many_tokens),
		cmocka_unit_test(queries),
		cmocka_unit_test(queries_that_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
