/* test_wire_connect.c - envelopes and the error vocabulary of the Connect protocol. */
#include "tests/unit/check.h"

#include "wire/connect.h"

static void envelopes_are_decoded(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		enum decode want;
		size_t used;
		bool end;
		struct bytes body;
		const char *why;
	} rows[] = {
		{ "nothing yet", { 0 }, DECODE_MORE, 0, false, { 0 }, "" },
		{ "half a head", BYTES_LIT("\0\0\0"), DECODE_MORE, 0, false, { 0 }, "" },
		{ "half a body", BYTES_LIT("\0\0\0\0\3ab"), DECODE_MORE, 0, false, { 0 }, "" },
		{ "empty", BYTES_LIT("\0\0\0\0\0"), DECODE_OK, 5, false, { 0 }, "" },
		{ "one", BYTES_LIT("\0\0\0\0\3abc"), DECODE_OK, 8, false, BYTES_LIT("abc"), "" },
		{ "end", BYTES_LIT("\2\0\0\0\2{}"), DECODE_OK, 7, true, BYTES_LIT("{}"), "" },
		{ "two, takes one", BYTES_LIT("\0\0\0\0\1a\2\0\0\0\0"), DECODE_OK, 6, false,
		  BYTES_LIT("a"), "" },
		{ "at the limit", BYTES_LIT("\0\0\0\0\20"), DECODE_MORE, 0, false, { 0 }, "" },
		{ "over the limit",
		  BYTES_LIT("\0\0\0\0\21"),
		  DECODE_BAD,
		  0,
		  false,
		  { 0 },
		  "message of 17 bytes, limit is 16" },
		{ "4 GiB",
		  BYTES_LIT("\0\377\377\377\377"),
		  DECODE_BAD,
		  0,
		  false,
		  { 0 },
		  "message of 4294967295 bytes, limit is 16" },
		{ "big-endian",
		  BYTES_LIT("\0\1\2\3\4"),
		  DECODE_BAD,
		  0,
		  false,
		  { 0 },
		  "message of 16909060 bytes, limit is 16" },
		{ "compressed",
		  BYTES_LIT("\1"),
		  DECODE_BAD,
		  0,
		  false,
		  { 0 },
		  "compressed messages are not supported" },
		{ "compressed end",
		  BYTES_LIT("\3\0\0\0\0"),
		  DECODE_BAD,
		  0,
		  false,
		  { 0 },
		  "compressed messages are not supported" },
		{ "unknown flag",
		  BYTES_LIT("\4"),
		  DECODE_BAD,
		  0,
		  false,
		  { 0 },
		  "unknown envelope flags 0x04" },
		{ "HTTP",
		  BYTES_LIT("HTTP/1.1 200"),
		  DECODE_BAD,
		  0,
		  false,
		  { 0 },
		  "unknown envelope flags 0x48" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct envelope e = { 0 };
		struct err err = { 0 };
		size_t used = 0;

		assert_int_equal(envelope_decode(row->in, 16, &e, &used, &err), row->want);
		assert_int_equal(used, row->used);
		assert_int_equal(e.end, row->end);
		assert_true(bytes_eq(e.body, row->body));
		assert_string_equal(err.msg, row->why);
	}
}

static void envelopes_are_encoded_whole_or_not_at_all(void **state)
{
	struct envelope e = { true, BYTES_LIT("abc") };
	struct err err = { 0 };

	(void)state;
	for (size_t max = 0; max < 10; max++) {
		AUTO(buf_done) struct buf out = BUF_MAX(max);

		assert_int_equal(envelope_put(&out, &e, &err), max < 8 ? -1 : 0);
		assert_true(bytes_eq(buf_view(&out),
				     max < 8 ? (struct bytes){ 0 } : BYTES_LIT("\2\0\0\0\3abc")));
	}
}

static void an_envelope_can_be_put_around_what_is_there(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(512), long_text = BUF_MAX(512);
	struct envelope e;
	struct err err = { 0 };
	size_t at, used;

	(void)state;
	assert_int_equal(buf_add(&out, BYTES_LIT("before"), &err), 0);
	assert_int_equal(envelope_open(&out, &at, &err), 0);
	for (int i = 0; i < 300; i++) {
		assert_int_equal(buf_add(&out, BYTES_LIT("x"), &err), 0);
		assert_int_equal(buf_add(&long_text, BYTES_LIT("x"), &err), 0);
	}
	envelope_close(&out, at);
	assert_int_equal(envelope_decode(bytes_tail(buf_view(&out), 6), 512, &e, &used, &err),
			 DECODE_OK);
	assert_false(e.end);
	assert_int_equal(used, 305);
	assert_true(bytes_eq(e.body, buf_view(&long_text)));
}

static void a_message_must_fit_32_bits(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(16);
	struct envelope e = { false, { (const uint8_t *)"", (size_t)UINT32_MAX + 1 } };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(envelope_put(&out, &e, &err), -1);
	assert_string_equal(err.msg, "message of 4294967296 bytes does not fit");
}

static void codes_have_names_and_statuses(void **state)
{
	static const struct {
		const char *name;
		enum connect_code code;
		unsigned int status;
	} rows[] = {
		{ "invalid_argument", CONNECT_INVALID_ARGUMENT, 400 },
		{ "unauthenticated", CONNECT_UNAUTHENTICATED, 401 },
		{ "not_found", CONNECT_NOT_FOUND, 404 },
		{ "already_exists", CONNECT_ALREADY_EXISTS, 409 },
		{ "aborted", CONNECT_ABORTED, 409 },
		{ "permission_denied", CONNECT_PERMISSION_DENIED, 403 },
		{ "resource_exhausted", CONNECT_RESOURCE_EXHAUSTED, 429 },
		{ "failed_precondition", CONNECT_FAILED_PRECONDITION, 400 },
		{ "out_of_range", CONNECT_OUT_OF_RANGE, 400 },
		{ "unimplemented", CONNECT_UNIMPLEMENTED, 501 },
		{ "internal", CONNECT_INTERNAL, 500 },
		{ "unknown", CONNECT_UNKNOWN, 500 },
		{ "data_loss", CONNECT_DATA_LOSS, 500 },
		{ "unavailable", CONNECT_UNAVAILABLE, 503 },
		{ "canceled", CONNECT_CANCELED, 499 },
		{ "deadline_exceeded", CONNECT_DEADLINE_EXCEEDED, 504 },
	};

	(void)state;
	assert_int_equal(COUNT(rows), CONNECT_CODES - 1);
	FOR_ROWS(row, rows) {
		assert_string_equal(connect_code_name(row->code), row->name);
		assert_int_equal(connect_code_status(row->code), row->status);
	}
	assert_int_equal(connect_code_of(ERR_NOT_FOUND), CONNECT_NOT_FOUND);
	assert_int_equal(connect_code_of(ERR_TIMEOUT), CONNECT_DEADLINE_EXCEEDED);
}

static void errors_are_built(void **state)
{
	static const struct {
		const char *name;
		struct bytes message, want;
	} rows[] = {
		{ "plain", BYTES_LIT("no x"),
		  BYTES_LIT("{\"code\":\"not_found\",\"message\":\"no x\"}") },
		{ "empty", { 0 }, BYTES_LIT("{\"code\":\"not_found\",\"message\":\"\"}") },
		{ "quotes", BYTES_LIT("a\"b\\\n"),
		  BYTES_LIT("{\"code\":\"not_found\",\"message\":\"a\\\"b\\\\\\n\"}") },
		{ "UTF-8", BYTES_LIT("\xc3\xa9"),
		  BYTES_LIT("{\"code\":\"not_found\",\"message\":\"\xc3\xa9\"}") },
		{ "not UTF-8", BYTES_LIT("a\xff\0b"),
		  BYTES_LIT("{\"code\":\"not_found\",\"message\":\"a??b\"}") },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(256);
		struct err err = { 0 };

		assert_int_equal(connect_put_error(&out, CONNECT_NOT_FOUND, row->message, &err), 0);
		assert_true(bytes_eq(buf_view(&out), row->want));
	}
}

static void streams_end(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(256);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(connect_put_end(&out, &err), 0);
	assert_true(bytes_eq(buf_view(&out), BYTES_LIT("\2\0\0\0\2{}")));
	buf_clear(&out);
	assert_int_equal(connect_put_end_error(&out, CONNECT_INTERNAL, BYTES_LIT("x"), &err), 0);
	assert_true(bytes_eq(buf_view(&out),
			     BYTES_LIT("\2\0\0\0\x2b{\"error\":{\"code\":\"internal\",\"message\":"
				       "\"x\"}}")));
}

static void the_longest_message_fits(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(16 * 1024);
	uint8_t worst[CONNECT_MESSAGE_MAX + 99];
	struct err err = { 0 };

	(void)state;
	memset(worst, 1, sizeof(worst)); /* each becomes \u0001 */
	assert_int_equal(connect_put_end_error(&out, CONNECT_DEADLINE_EXCEEDED,
					       (struct bytes){ worst, sizeof(worst) }, &err),
			 0);
	assert_true(out.len > 6 * CONNECT_MESSAGE_MAX && out.len < 6 * CONNECT_MESSAGE_MAX + 100);
}

static void a_stream_that_passes_by_is_followed(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		bool between;
	} rows[] = {
		{ "nothing", { 0 }, true },
		{ "a part of a head", BYTES_LIT("\0\0\0\0"), false },
		{ "an empty message", BYTES_LIT("\0\0\0\0\0"), true },
		{ "a head", BYTES_LIT("\0\0\0\0\2"), false },
		{ "a part of a message", BYTES_LIT("\0\0\0\0\2{"), false },
		{ "a message", BYTES_LIT("\0\0\0\0\2{}"), true },
		{ "a compressed one", BYTES_LIT("\1\0\0\0\2{}"), true },
		{ "two", BYTES_LIT("\0\0\0\0\2{}\0\0\0\0\1x"), true },
		{ "one and a half", BYTES_LIT("\0\0\0\0\2{}\0\0\0\0\2x"), false },
		{ "the last", BYTES_LIT("\0\0\0\0\2{}\2\0\0\0\2{}"), false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		for (size_t cut = 0; cut <= row->in.len; cut++) {
			struct envelope_place p = { 0 };

			envelope_follow(&p, bytes_head(row->in, cut));
			envelope_follow(&p, bytes_tail(row->in, cut));
			assert_int_equal(envelope_between(&p), row->between);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(envelopes_are_decoded),
		cmocka_unit_test(envelopes_are_encoded_whole_or_not_at_all),
		cmocka_unit_test(an_envelope_can_be_put_around_what_is_there),
		cmocka_unit_test(a_message_must_fit_32_bits),
		cmocka_unit_test(codes_have_names_and_statuses),
		cmocka_unit_test(errors_are_built),
		cmocka_unit_test(streams_end),
		cmocka_unit_test(the_longest_message_fits),
		cmocka_unit_test(a_stream_that_passes_by_is_followed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
