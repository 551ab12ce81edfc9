/* test_vm_qmp_mock.c - the QMP conversation with a mock: well-behaved, then hostile. */
#include "tests/unit/vm_qmp_scenes.h"

#include <sys/socket.h>

#include "net/fd_stream.h"

#define GREETING                                                                           \
	"{\"QMP\": {\"version\": {\"qemu\": {\"micro\": 2, \"minor\": 0, \"major\": 10}, " \
	"\"package\": \"mock\"}, \"capabilities\": [\"oob\"]}}\r\n"
#define CAPABLE   "{\"return\": {}, \"id\": 0}\r\n"
#define EVENT     "{\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}, \"event\": \"STOP\"}\r\n"
#define TIMESTAMP "\"timestamp\": {\"seconds\": 1, \"microseconds\": 2}"

static struct mock {
	struct stream *stream;
	struct stream_user user;
	struct timer again; /* floods, or delivers the next byte */
	struct buf in;
	size_t scanned;
	const char *script; /* said at once; NULL: behaves */
	size_t said;
	bool bytewise, then_close, flood;
} mock;

static void mock_say(const char *text)
{
	struct err err;

	if (mock.stream && stream_write(mock.stream, bytes_str(text), &err) < 0)
		fail_msg("mock: %s", err.msg);
}

static void mock_close(void)
{
	timer_stop(&mock.again);
	if (mock.stream)
		stream_close(TAKE(mock.stream));
}

static const struct {
	const char *command, *answer, *event;
} knows[] = {
	{ "qmp_capabilities", "\"return\": {}", NULL },
	{ "query-status", "\"return\": {\"status\": \"prelaunch\", \"running\": false}", NULL },
	{ "query-name", "\"return\": {}", NULL },
	{ "cont", "\"return\": {}", "RESUME" },
	{ "quit", "\"return\": {}", "SHUTDOWN" },
};

static void mock_answer(const char *command, json_int_t id)
{
	const char *answer = "\"error\": {\"class\": \"CommandNotFound\", "
			     "\"desc\": \"The command is not known\"}";
	char line[300];

	for (size_t i = 0; i < COUNT(knows); i++) {
		if (strcmp(knows[i].command, command) != 0)
			continue;
		answer = knows[i].answer;
		if (knows[i].event) {
			snprintf(line, sizeof(line), "{" TIMESTAMP ", \"event\": \"%s\"}\r\n",
				 knows[i].event);
			mock_say(line);
		}
	}
	snprintf(line, sizeof(line), "{%s, \"id\": %lld}\r\n", answer, (long long)id);
	mock_say(line);
	if (strcmp(command, "quit") == 0)
		mock_close();
}

static void mock_hears(struct stream_user *u, struct bytes in)
{
	struct err err;
	struct bytes line;
	size_t used;

	(void)u;
	assert_int_equal(buf_add(&mock.in, in, &err), 0);
	while (mock.stream &&
	       qmp_line(buf_view(&mock.in), &mock.scanned, &line, &used, &err) == DECODE_OK) {
		AUTO(json_decrefp) json_t *v = NULL;

		assert_int_equal(json_decode(line, 4096, 16, &v, &err), 0);
		if (!mock.script)
			mock_answer(json_string_value(json_object_get(v, "execute")),
				    json_integer_value(json_object_get(v, "id")));
		mock.scanned = 0;
		buf_drop(&mock.in, used);
	}
}

static void mock_end(struct stream_user *u)
{
	(void)u;
	mock_close();
}

static void mock_drain(struct stream_user *u)
{
	(void)u;
}

static void mock_fail(struct stream_user *u, const struct err *err)
{
	(void)u, (void)err;
	mock_close();
}

/* The next byte of the script, or once more all of it. */
static void mock_again(struct timer *t)
{
	char one[2] = { 0 };

	if (mock.flood) {
		while (mock.stream && stream_room(mock.stream) > strlen(mock.script))
			mock_say(mock.script);
	} else if (mock.script[mock.said]) {
		one[0] = mock.script[mock.said++];
		mock_say(one);
	} else {
		if (mock.then_close)
			mock_close();
		return;
	}
	if (mock.stream)
		timer_start(t, 0);
}

static void peer_start(struct scene *s, struct stream **ret)
{
	static const struct stream_user_ops ops = { mock_hears, mock_end, mock_drain, mock_fail };
	struct err err;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(fd_stream_open(s->loop, pair[0], FD_STREAM_BOTH, ret, &err), 0);
	assert_int_equal(fd_stream_open(s->loop, pair[1], FD_STREAM_BOTH, &mock.stream, &err), 0);
	mock.user.ops = &ops;
	mock.in = BUF_MAX(64 * 1024);
	stream_set_user(mock.stream, &mock.user);
	stream_read(mock.stream, true);
	timer_init(&mock.again, s->loop, mock_again);
	if (!mock.script) {
		mock_say(GREETING);
		return;
	}
	if (mock.bytewise) {
		timer_start(&mock.again, 0);
		return;
	}
	mock_say(mock.script);
	if (mock.flood)
		timer_start(&mock.again, 0);
	else if (mock.then_close)
		mock_close();
}

static void peer_end(void)
{
	mock_close();
	buf_done(&mock.in);
	mock = (struct mock){ 0 };
}

/* --- what only a hostile peer does -------------------------------------------------------- */

static void a_breach_ends_the_link(void **state)
{
	static const struct {
		const char *name, *script;
		enum err_code code;
		const char *why;
		bool close;
	} rows[] = {
		{ "closes at once", "", ERR_UNAVAILABLE, "gone", true },
		{ "closes after the greeting", GREETING, ERR_UNAVAILABLE, "gone", true },
		{ "closes inside a line", "{\"QMP\"", ERR_UNAVAILABLE, "gone", true },
		{ "garbage", "\x01\x02\xff\xfe\n", ERR_INVALID, "QMP message", false },
		{ "another protocol", "HTTP/1.1 400 Bad Request\r\n", ERR_INVALID, "QMP", false },
		{ "JSON of no kind", "{\"a\":1}\n", ERR_INVALID, "no kind", false },
		{ "a second greeting", GREETING GREETING, ERR_INVALID, "second greeting", false },
		{ "answer before greeting", CAPABLE, ERR_INVALID, "nobody waits", false },
		{ "event before greeting", EVENT, ERR_INVALID, "before capabilities", false },
		{ "event before capabilities", GREETING EVENT, ERR_INVALID, "before", false },
		{ "wrong id", GREETING "{\"return\": {}, \"id\": 1}\n", ERR_INVALID, "nobody",
		  false },
		{ "no id", GREETING "{\"return\": {}}\n", ERR_INVALID, "id must be", false },
		{ "id of another type", GREETING "{\"return\": {}, \"id\": \"0\"}\n", ERR_INVALID,
		  "id must be", false },
		{ "error without id",
		  GREETING "{\"error\": {\"class\": \"GenericError\", \"desc\": \"x\"}}\n",
		  ERR_INVALID, "nobody waits", false },
		{ "one answer too many",
		  GREETING CAPABLE "{\"return\": {}, \"id\": 1}\n{\"return\": {}, \"id\": 2}\n",
		  ERR_INVALID, "nobody waits", false },
		{ "the same answer twice", GREETING CAPABLE CAPABLE, ERR_INVALID, "nobody waits",
		  false },
		{ "capabilities refused",
		  GREETING
		  "{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\"}, \"id\": 0}\n",
		  ERR_INVALID, "qmp_capabilities: GenericError: no", false },
		{ "too deep",
		  GREETING CAPABLE
		  "{\"return\": [[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]], \"id\": 1}\n",
		  ERR_EXHAUSTED, "nested", false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct scene s;

		mock.script = row->script;
		mock.then_close = row->close;
		scene_open(&s);
		assert_int_equal(scene_ask(&s, 0, "query-status", CALL_MS), 0);
		scene_run(&s, until_gone);
		assert_int_equal(s.calls[0].done, 1);
		assert_int_equal(s.why.code, row->code);
		if (!strstr(s.why.msg, row->why))
			fail_msg("\"%s\" lacks \"%s\"", s.why.msg, row->why);
		assert_int_equal(scene_ask(&s, 1, "query-status", CALL_MS), -1);
		scene_end(&s);
	}
}

static void how_bytes_are_split_changes_nothing(void **state)
{
	struct scene s;

	(void)state;
	mock.script = GREETING CAPABLE EVENT "{\"return\": {\"x\": 7}, \"id\": 1}\r\n";
	mock.bytewise = true;
	scene_open(&s);
	assert_int_equal(scene_ask(&s, 0, "query-status", CALL_MS), 0);
	scene_run(&s, until_event);
	assert_string_equal(s.calls[0].text, "{\"x\":7}");
	assert_string_equal(s.event, "STOP");
	scene_end(&s);
}

static void a_command_without_an_answer_times_out(void **state)
{
	struct scene s;

	(void)state;
	mock.script = GREETING CAPABLE;
	scene_open(&s);
	scene_run(&s, until_ready);
	assert_int_equal(scene_ask(&s, 0, "query-status", CALL_MS), 0);
	assert_int_equal(scene_ask(&s, 1, "stop", 30), 0);
	scene_run(&s, until_gone);
	assert_int_equal(s.why.code, ERR_TIMEOUT);
	assert_string_equal(s.why.msg, "QMP stop: no answer in time");
	assert_int_equal(s.calls[0].done, 1);
	assert_int_equal(s.calls[1].done, 1);
	assert_int_equal(s.calls[0].err.code, ERR_TIMEOUT);
	scene_end(&s);
}

static void a_flood_of_events_ends_the_link(void **state)
{
	static const struct {
		const char *name, *script;
	} rows[] = {
		{ "many small ones", GREETING CAPABLE EVENT },
		{ "few large ones", NULL },
	};
	static char large[100 * 1000];

	(void)state;
	FOR_ROWS(row, rows) {
		struct scene s;

		mock.script = GREETING CAPABLE;
		scene_open(&s);
		scene_run(&s, until_ready);
		snprintf(large, sizeof(large),
			 "{" TIMESTAMP ", \"event\": \"X\", \"data\": {\"a\": \"%090000d\"}}\n", 1);
		mock.script = row->script ? EVENT : large;
		mock.flood = true;
		timer_start(&mock.again, 0);
		scene_run(&s, until_gone);
		assert_int_equal(s.why.code, ERR_EXHAUSTED);
		assert_string_equal(s.why.msg, "QMP: a flood");
		assert_true(s.n_events <= 3 * QMP_LINK_WINDOW_LINES);
		scene_end(&s);
	}
}

static void a_line_without_an_end_ends_the_link(void **state)
{
	struct scene s;

	(void)state;
	mock.script = "                                                                ";
	mock.flood = true;
	scene_open(&s);
	scene_run(&s, until_gone);
	assert_int_equal(s.why.code, ERR_EXHAUSTED);
	assert_non_null(strstr(s.why.msg, "QMP line over"));
	scene_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		QMP_SCENES,
		cmocka_unit_test(a_breach_ends_the_link),
		cmocka_unit_test(how_bytes_are_split_changes_nothing),
		cmocka_unit_test(a_command_without_an_answer_times_out),
		cmocka_unit_test(a_flood_of_events_ends_the_link),
		cmocka_unit_test(a_line_without_an_end_ends_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
