/* test_interp_message.c - messages of kernels: signatures, text that is no text, and the lines that
 * clients are told. */
#include "tests/unit/check.h"

#include "interp/events.h"
#include "interp/json_bound.h"
#include "interp/json_mend.h"
#include "wire/hmac.h"

enum { SIGNED = 4, FRAMES = 2 + SIGNED };

static const struct bytes key = BYTES_LIT("a key");

/* A message as a kernel sends it, signed whatever is in it. */
static int decode(const char *type, struct bytes content, struct kernel_message *ret,
		  struct err *err)
{
	AUTO(buf_done) struct buf header = BUF_MAX(1024);
	AUTO(buf_done) struct buf hex = BUF_MAX(1024);
	struct bytes f[FRAMES] = { BYTES_LIT("<IDS|MSG>") };
	uint8_t mac[SHA256_SIZE];

	assert_int_equal(buf_printf(&header, err, "{\"msg_type\":\"%s\"}", type), 0);
	f[2] = buf_view(&header);
	f[3] = BYTES_LIT("{\"msg_id\":\"s-1\"}");
	f[4] = BYTES_LIT("{}");
	f[5] = content;
	hmac_sha256_pieces(key, f + 2, SIGNED, mac);
	for (size_t i = 0; i < sizeof(mac); i++)
		assert_int_equal(buf_printf(&hex, err, "%02x", mac[i]), 0);
	f[1] = buf_view(&hex);
	return kernel_message_decode(key, f, FRAMES, ret, err);
}

static void what_we_send_can_be_read(void **state)
{
	AUTO(json_decrefp) json_t *content = json_pack("{s:s}", "code", "1 + 1");
	struct kernel_frames f;
	struct kernel_message m;
	struct err err;

	(void)state;
	assert_int_equal(
		kernel_message_encode(key, "execute_request", "s-7", "s", content, &f, &err), 0);
	assert_int_equal(kernel_message_decode(key, f.frames, MESSAGE_FRAMES, &m, &err), 0);
	assert_string_equal(m.type, "execute_request");
	assert_string_equal(m.parent, "");
	assert_true(json_equal(m.content, content) && !m.unreadable);
	kernel_message_done(&m);
	/* and only by who has the key, and only as a whole */
	assert_int_equal(
		kernel_message_decode(BYTES_LIT("b key"), f.frames, MESSAGE_FRAMES, &m, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	for (size_t n = 0; n < MESSAGE_FRAMES; n++) {
		assert_int_equal(kernel_message_decode(key, f.frames, n, &m, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	kernel_frames_done(&f);
}

static void messages_become_lines(void **state)
{
	static const struct {
		const char *name, *type, *content, *line;
	} rows[] = {
		{ "a count", "execute_input", "{\"execution_count\":3}",
		  "{\"type\":\"number_of_executions\",\"execution_count\":3}\n" },
		{ "a count that is none", "execute_input", "{\"execution_count\":\"3\"}", "" },
		{ "a count beyond integers", "execute_input", "{\"execution_count\":1e300}", "" },
		{ "a negative count", "execute_input", "{\"execution_count\":-1}", "" },
		{ "a result", "execute_result", "{\"data\":{\"text/plain\":\"'a'\"}}",
		  "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"a\",\"extra\":{}}\n" },
		{ "not quoted", "display_data", "{\"data\":{\"text/plain\":\"'a\\\"\"}}",
		  "{\"type\":\"result\",\"is_main_result\":false,\"text\":\"'a\\\"\",\"extra\":{}}"
		  "\n" },
		{ "one quote", "display_data", "{\"data\":{\"text/plain\":\"'\"}}",
		  "{\"type\":\"result\",\"is_main_result\":false,\"text\":\"'\",\"extra\":{}}\n" },
		{ "another type", "display_data",
		  "{\"data\":{\"a/b\":{\"c\":1},\"image/png\":null}}",
		  "{\"type\":\"result\",\"is_main_result\":false,\"extra\":{\"a/"
		  "b\":{\"c\":1}}}\n" },
		{ "no data", "display_data", "{\"data\":[1]}",
		  "{\"type\":\"result\",\"is_main_result\":false,\"extra\":{}}\n" },
		{ "an error with colours", "error",
		  "{\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"\\u001b[31ma\\u001b[0m\","
		  "\"b\\u001b[\"]}",
		  "{\"type\":\"error\",\"name\":\"E\",\"value\":\"v\",\"traceback\":\"ab\"}\n" },
		{ "an error that says nothing", "error", "{\"ename\":5}",
		  "{\"type\":\"error\",\"name\":\"Error\",\"value\":\"\",\"traceback\":\"\"}\n" },
		{ "in ASCII", "error", "{\"ename\":\"\xc3\xa9\",\"evalue\":\"\xf0\x9f\x98\x80\"}",
		  "{\"type\":\"error\",\"name\":\"\\u00E9\",\"value\":\"\\uD83D\\uDE00\","
		  "\"traceback\":\"\"}\n" },
		{ "mended", "error", "{\"ename\":\"\xff\",\"evalue\":\"\\ud800\"}",
		  "{\"type\":\"error\",\"name\":\"\\uFFFD\",\"value\":\"\\uFFFD\",\"traceback\":"
		  "\"\"}\n" },
		{ "unreadable", "stream", "{",
		  "{\"type\":\"error\",\"name\":\"UnreadableMessage\",\"value\":\"The kernel sent "
		  "a "
		  "message that cannot be read\",\"traceback\":\"\"}\n" },
		{ "unreadable and never told", "status", "{", "" },
		{ "a type that is not known", "comm_open", "{\"data\":{}}", "" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(4096);
		struct kernel_message m;
		struct err err = { 0 };
		bool error;

		assert_int_equal(decode(row->type, bytes_str(row->content), &m, &err), 0);
		assert_string_equal(m.parent, "s-1");
		assert_int_equal(event_of_message(&m, false, &out, &error, &err), 0);
		assert_int_equal(error, strstr(row->line, "\"type\":\"error\"") != NULL);
		assert_int_equal(buf_add(&out, BYTES_LIT("\0"), &err), 0);
		assert_string_equal((const char *)out.ptr, row->line);
		kernel_message_done(&m);
	}
}

static void output_has_a_time(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(4096);
	struct kernel_message m;
	struct err err;
	bool error;

	(void)state;
	assert_int_equal(
		decode("stream", BYTES_LIT("{\"name\":\"stderr\",\"text\":\"a\\n\"}"), &m, &err),
		0);
	assert_int_equal(event_of_message(&m, true, &out, &error, &err), 0);
	assert_int_equal(buf_add(&out, BYTES_LIT("\0"), &err), 0);
	/* the newline apart; the time is ours, since the kernel said none */
	assert_non_null(
		strstr((char *)out.ptr, "{\"type\":\"stderr\",\"text\":\"a\",\"timestamp\":\"20"));
	assert_non_null(strstr((char *)out.ptr,
			       "\n{\"type\":\"stderr\",\"text\":\"\\n\",\"timestamp\":\"20"));
	kernel_message_done(&m);
}

static void a_line_is_whole_or_not_there(void **state)
{
	struct kernel_message m;
	struct err err;
	bool error;

	(void)state;
	assert_int_equal(decode("execute_input", BYTES_LIT("{\"execution_count\":1}"), &m, &err),
			 0);
	for (size_t room = 0; room < 80; room++) {
		AUTO(buf_done) struct buf out = BUF_MAX(room);
		int rc = event_of_message(&m, false, &out, &error, &err);

		assert_int_equal(rc, out.len > 0 ? 0 : -1);
		if (rc == 0)
			assert_int_equal(out.ptr[out.len - 1], '\n');
	}
	kernel_message_done(&m);
}

static void text_is_mended(void **state)
{
	static const struct {
		const char *name, *in, *out;
	} rows[] = {
		{ "nothing", "", "" },
		{ "plain", "{\"a\": [1]}", "{\"a\": [1]}" },
		{ "characters", "\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
		  "\xc2\x80\xe0\xa0\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf" },
		{ "a stray byte", "a\x80z", "a\xef\xbf\xbdz" },
		{ "cut off", "a\xe2\x82", "a\xef\xbf\xbd\xef\xbf\xbd" },
		{ "too long a form", "\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd" },
		{ "a surrogate in UTF-8", "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "beyond the last", "\xf4\x90\x80\x80",
		  "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "a pair", "\\uD83D\\ude00", "\\uD83D\\ude00" },
		{ "a first half", "\\ud83dx", "\\ufffdx" },
		{ "two first halves", "\\ud83d\\ud83d\\ude00", "\\ufffd\\ud83d\\ude00" },
		{ "a second half", "\\ude00", "\\ufffd" },
		{ "NUL", "\\u0000", "\\ufffd" },
		{ "no escape", "\\\\ud83d", "\\\\ud83d" },
		{ "behind one", "\\\\\\ud83d", "\\\\\\ufffd" },
		{ "cut off in an escape", "\\ud8", "\\ud8" },
		{ "a backslash at the end", "\\", "\\" },
		{ "a backslash before no character", "\\\xff", "\\\xef\xbf\xbd" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(256);
		struct err err;

		assert_int_equal(json_mend(bytes_str(row->in), &out, &err), 0);
		assert_true(bytes_eq(buf_view(&out), bytes_str(row->out)));
	}
}

static void memory_of_a_message_is_bounded(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(32 * 1024 * 1024);
	struct kernel_message m;
	struct err err;

	(void)state;
	assert_int_equal(buf_add(&text, BYTES_LIT("{\"data\":["), &err), 0);
	while (text.len < 24 * 1024 * 1024) /* eight million arrays */
		assert_int_equal(buf_add(&text, BYTES_LIT("[],[],[],[],[],[],[],[],"), &err), 0);
	assert_int_equal(buf_add(&text, BYTES_LIT("0]}"), &err), 0);
	assert_int_equal(decode("display_data", buf_view(&text), &m, &err), 0);
	assert_true(m.unreadable);
	kernel_message_done(&m);
	/* and afterwards there is room again */
	assert_int_equal(decode("display_data", BYTES_LIT("{\"a\":1}"), &m, &err), 0);
	assert_false(m.unreadable);
	kernel_message_done(&m);
}

static void numbers_that_are_too_large(void **state)
{
	struct kernel_message m;
	struct err err;

	(void)state;
	assert_int_equal(decode("x", BYTES_LIT("{\"a\":123456789012345678901234567890}"), &m, &err),
			 0);
	assert_true(json_real_value(json_object_get(m.content, "a")) > 1e29);
	kernel_message_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_we_send_can_be_read),
		cmocka_unit_test(messages_become_lines),
		cmocka_unit_test(output_has_a_time),
		cmocka_unit_test(a_line_is_whole_or_not_there),
		cmocka_unit_test(text_is_mended),
		cmocka_unit_test(memory_of_a_message_is_bounded),
		cmocka_unit_test(numbers_that_are_too_large),
	};

	json_bound_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
