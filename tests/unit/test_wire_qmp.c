/* test_wire_qmp.c - QMP lines: cut within a limit, told apart, never believed unread. */
#include "tests/unit/check.h"

#include "wire/qmp.h"

static void lines_are_cut(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		enum decode want;
		size_t used;
		struct bytes line;
	} rows[] = {
		{ "nothing", { 0 }, DECODE_MORE, 0, { 0 } },
		{ "half", BYTES_LIT("{\"a\""), DECODE_MORE, 0, { 0 } },
		{ "CR only", BYTES_LIT("{}\r"), DECODE_MORE, 0, { 0 } },
		{ "line", BYTES_LIT("{}\r\n"), DECODE_OK, 4, BYTES_LIT("{}") },
		{ "LF only", BYTES_LIT("{}\n{}"), DECODE_OK, 3, BYTES_LIT("{}") },
		{ "empty", BYTES_LIT("\r\n"), DECODE_OK, 2, { 0 } },
		{ "two", BYTES_LIT("a\r\nb\r\n"), DECODE_OK, 3, BYTES_LIT("a") },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct err err = { 0 };
		struct bytes line = { 0 };
		size_t used = 0, scanned = 0;
		enum decode got = DECODE_MORE;

		for (size_t n = 0; n <= row->in.len && got == DECODE_MORE; n++)
			got = qmp_line(bytes_head(row->in, n), &scanned, &line, &used, &err);
		assert_int_equal(got, row->want);
		assert_int_equal(used, row->used);
		assert_true(bytes_eq(line, row->line));
	}
}

static void a_line_has_an_end(void **state)
{
	AUTO(buf_done) struct buf b = BUF_MAX(QMP_LINE_MAX);
	struct err err = { 0 };
	struct bytes line;
	size_t used = 0, scanned = 0;
	uint8_t *room;

	(void)state;
	assert_int_equal(buf_reserve(&b, QMP_LINE_MAX, &room, &err), 0);
	memset(room, ' ', QMP_LINE_MAX);
	buf_claim(&b, QMP_LINE_MAX);
	assert_int_equal(
		qmp_line(bytes_head(buf_view(&b), QMP_LINE_MAX - 1), &scanned, &line, &used, &err),
		DECODE_MORE);
	assert_int_equal(qmp_line(buf_view(&b), &scanned, &line, &used, &err), DECODE_BAD);
	assert_string_equal(err.msg, "QMP line over 262144 bytes");
	b.ptr[QMP_LINE_MAX - 1] = '\n';
	scanned = 0;
	assert_int_equal(qmp_line(buf_view(&b), &scanned, &line, &used, &err), DECODE_OK);
	assert_int_equal(used, QMP_LINE_MAX);
}

#define STAMP "\"timestamp\":{\"seconds\":1,\"microseconds\":2}"

static void messages_are_told_apart(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		enum qmp_kind kind;
		bool has_id;
		uint64_t id;
		bool has_data;
		struct bytes word, desc;
	} rows[] = {
		{ "greeting",
		  BYTES_LIT("{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 22, \"minor\": 2, "
			    "\"major\": "
			    "7}, \"package\": \"Debian\"}, \"capabilities\": [\"oob\"]}}"),
		  QMP_GREETING },
		{ "return", BYTES_LIT("{\"return\": {}, \"id\": 7}"), QMP_RETURN, true, 7, true },
		{ "return of a list", BYTES_LIT("{\"id\":0,\"return\":[]}"), QMP_RETURN, true, 0,
		  true },
		{ "return of text", BYTES_LIT("{\"id\":1,\"return\":\"\"}"), QMP_RETURN, true, 1,
		  true },
		{ "error",
		  BYTES_LIT("{\"id\": 3, \"error\": {\"class\": \"GenericError\", \"desc\": "
			    "\"no\"}}"),
		  QMP_ERROR, true, 3, false, BYTES_LIT("GenericError"), BYTES_LIT("no") },
		{ "error to nothing", BYTES_LIT("{\"error\": {\"class\": \"G\", \"desc\": \"\"}}"),
		  QMP_ERROR, false, 0, false, BYTES_LIT("G") },
		{ "event", BYTES_LIT("{" STAMP ",\"event\":\"STOP\"}"), QMP_EVENT, false, 0, false,
		  BYTES_LIT("STOP") },
		{ "event with data", BYTES_LIT("{" STAMP ",\"event\":\"JOB\",\"data\":{\"a\":1}}"),
		  QMP_EVENT, false, 0, true, BYTES_LIT("JOB") },
		{ "unknown members", BYTES_LIT("{\"return\":{},\"id\":1,\"x\":[]}"), QMP_RETURN,
		  true, 1, true },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(qmp_message_done) struct qmp_message m = { 0 };
		struct err err = { 0 };

		assert_int_equal(qmp_parse(row->in, &m, &err), 0);
		assert_int_equal(m.kind, row->kind);
		assert_int_equal(m.has_id, row->has_id);
		assert_true(m.id == row->id);
		assert_int_equal(m.data != NULL, row->has_data);
		assert_true(bytes_eq(m.name, row->word));
		assert_true(bytes_eq(m.desc, row->desc));
		if (m.kind == QMP_GREETING) {
			assert_int_equal(m.major, 7);
			assert_int_equal(m.minor, 2);
			assert_int_equal(m.micro, 22);
		}
	}
}

#define QEMU(major)                                                                 \
	"{\"QMP\":{\"capabilities\":[],\"version\":{\"qemu\":{\"major\":" major "," \
	"\"minor\":1,\"micro\":1}}}}"

static void a_monitor_that_lies_is_refused(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		const char *why;
	} rows[] = {
		{ "nothing", { 0 }, "QMP message: JSON, line 1 column 0:" },
		{ "no kind", BYTES_LIT("{}"), "QMP message of no kind" },
		{ "list", BYTES_LIT("[]"), "QMP message of no kind" },
		{ "two kinds", BYTES_LIT("{\"return\":{},\"error\":{},\"id\":1}"),
		  "QMP message of more than one kind" },
		{ "return without id", BYTES_LIT("{\"return\":{}}"),
		  "QMP return: id must be a number of ours" },
		{ "id is text", BYTES_LIT("{\"return\":{},\"id\":\"1\"}"),
		  "QMP return: id must be a number of ours" },
		{ "id is negative", BYTES_LIT("{\"return\":{},\"id\":-1}"),
		  "QMP return: id must be a number of ours" },
		{ "id is null",
		  BYTES_LIT("{\"error\":{\"class\":\"G\",\"desc\":\"\"},\"id\":null}"),
		  "QMP error: id must be a number of ours" },
		{ "error is text", BYTES_LIT("{\"error\":\"x\"}"),
		  "QMP error: error must be an object" },
		{ "error without class", BYTES_LIT("{\"error\":{\"desc\":\"x\"}}"),
		  "QMP error: class is missing" },
		{ "class is a number", BYTES_LIT("{\"error\":{\"class\":1,\"desc\":\"x\"}}"),
		  "QMP error: class must be a string" },
		{ "event is a number", BYTES_LIT("{" STAMP ",\"event\":1}"),
		  "QMP event: event must be a string" },
		{ "event without a name", BYTES_LIT("{" STAMP ",\"event\":\"\"}"),
		  "QMP event: event must have 1 to 128 bytes" },
		{ "event data is a list", BYTES_LIT("{" STAMP ",\"event\":\"A\",\"data\":[]}"),
		  "QMP event: data must be an object" },
		{ "event without time", BYTES_LIT("{\"event\":\"A\"}"),
		  "QMP event: timestamp is missing" },
		{ "greeting is null", BYTES_LIT("{\"QMP\":null}"), "QMP greeting: QMP is missing" },
		{ "version is text", BYTES_LIT(QEMU("\"x\"")),
		  "QMP greeting: major must be a whole number from 0 to 9999" },
		{ "version is huge", BYTES_LIT(QEMU("10000")),
		  "QMP greeting: major must be a whole number from 0 to 9999" },
		{ "too deep", BYTES_LIT("{\"return\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]],\"id\":1}"),
		  "QMP message: JSON nested deeper than 16" },
		{ "two lines", BYTES_LIT("{\"return\":1,\"id\":1} {}"),
		  "QMP message: JSON, line 1 column 21:" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(qmp_message_done) struct qmp_message m = { 0 };
		struct err err = { 0 };

		assert_int_equal(qmp_parse(row->in, &m, &err), -1);
		assert_memory_equal(err.msg, row->why, strlen(row->why)); /* then jansson's words */
		assert_null(m.json);
	}
}

static void commands_are_lines(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(256);
	AUTO(json_decrefp) json_t *args = json_pack("{s:s}", "text", "a\nb");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(qmp_put_command(&out, "stop", NULL, 1, &err), 0);
	assert_int_equal(qmp_put_command(&out, "x", args, INT64_MAX, &err), 0);
	assert_true(bytes_eq(buf_view(&out),
			     BYTES_LIT("{\"execute\":\"stop\",\"id\":1}\r\n"
				       "{\"execute\":\"x\",\"arguments\":{\"text\":\"a\\nb\"},"
				       "\"id\":9223372036854775807}\r\n")));
	for (size_t max = 0; max < 27; max++) {
		AUTO(buf_done) struct buf small = BUF_MAX(max);

		assert_int_equal(qmp_put_command(&small, "stop", NULL, 1, &err), -1);
		assert_int_equal(small.len, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_cut),
		cmocka_unit_test(a_line_has_an_end),
		cmocka_unit_test(messages_are_told_apart),
		cmocka_unit_test(a_monitor_that_lies_is_refused),
		cmocka_unit_test(commands_are_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
