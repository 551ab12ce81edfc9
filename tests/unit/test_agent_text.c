/* test_agent_text.c - the pure parts of the agent: paths, lists of strings, events, requests. */
#include "tests/unit/check.h"

#include <signal.h>

#include "agent/access.h"
#include "agent/files/content_disposition.h"
#include "agent/options.h"
#include "agent/process/process_event.h"
#include "agent/process/start_request.h"
#include "agent/user_path.h"

static void paths_mean_what_users_expect(void **state)
{
	static const struct account user = { .home = "/home/user", .name = "user" };
	static const struct {
		const char *name;
		struct bytes path;
		const char *workdir, *want; /* want NULL: refused */
	} rows[] = {
		{ "nothing", { 0 }, "", "/home/user" },
		{ "nothing, with a workdir", { 0 }, "/code", "/code" },
		{ "nothing, relative workdir", { 0 }, "code", "/home/user/code" },
		{ "absolute", BYTES_LIT("/tmp/x"), "/code", "/tmp/x" },
		{ "absolute stays as it is", BYTES_LIT("/tmp/../x//y/"), "", "/tmp/../x//y/" },
		{ "relative", BYTES_LIT("a/b"), "/code", "/home/user/a/b" },
		{ "relative is cleaned", BYTES_LIT("./a//../b/."), "", "/home/user/b" },
		{ "above the root", BYTES_LIT("../../../../etc"), "", "/etc" },
		{ "the root", BYTES_LIT("../.."), "", "/" },
		{ "home", BYTES_LIT("~"), "", "/home/user" },
		{ "below home", BYTES_LIT("~/a"), "", "/home/user/a" },
		{ "somebody's home", BYTES_LIT("~root/a"), "", NULL },
		{ "tilde inside", BYTES_LIT("a/~"), "", "/home/user/a/~" },
		{ "NUL", BYTES_LIT("a\0b"), "", NULL },
		{ "NUL, absolute", BYTES_LIT("/a\0b"), "", NULL },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char got[USER_PATH_MAX];
		struct err err = { 0 };

		assert_int_equal(user_path(row->path, &user, row->workdir, got, &err),
				 row->want ? 0 : -1);
		if (row->want)
			assert_string_equal(got, row->want);
	}
}

static void a_path_that_is_too_long_is_refused(void **state)
{
	static const struct account user = { .home = "/h" };
	char text[USER_PATH_MAX + 8], got[USER_PATH_MAX];
	struct err err = { 0 };

	(void)state;
	memset(text, 'a', sizeof(text));
	for (size_t len = USER_PATH_MAX - 8; len < sizeof(text); len++) {
		struct bytes b = { (const uint8_t *)text, len };
		bool fits = len + strlen("/h/") < USER_PATH_MAX;

		assert_int_equal(user_path(b, &user, "", got, &err), fits ? 0 : -1);
		text[0] = '/';
		assert_int_equal(user_path(b, &user, "", got, &err), len < USER_PATH_MAX ? 0 : -1);
		text[0] = 'a';
	}
}

static void names_fit_into_a_header(void **state)
{
	static const struct {
		const char *name;
		struct bytes in;
		const char *want;
	} rows[] = {
		{ "plain", BYTES_LIT("a.txt"), "inline; filename=a.txt" },
		{ "blank", BYTES_LIT("a b"), "inline; filename=\"a b\"" },
		{ "quote", BYTES_LIT("a\"b\\"), "inline; filename=\"a\\\"b\\\\\"" },
		{ "UTF-8", BYTES_LIT("\303\274.txt"), "inline; filename*=utf-8''%C3%BC.txt" },
		{ "line end", BYTES_LIT("a\r\nX: y"), "inline; filename*=utf-8''a%0D%0AX%3A%20y" },
		{ "not UTF-8", BYTES_LIT("\377'*%"), "inline; filename*=utf-8''%FF%27%2A%25" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(256);
		struct err err = { 0 };

		assert_int_equal(content_disposition_put(&out, row->in, &err), 0);
		assert_true(bytes_eq(buf_view(&out), bytes_str(row->want)));
	}
}

static void the_last_value_of_a_variable_wins(void **state)
{
	AUTO(strings_done) struct strings env = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_null(strings_env(&env, "A"));
	assert_int_equal(strings_set_env(&env, BYTES_LIT("A"), BYTES_LIT("1"), &err), 0);
	assert_int_equal(strings_set_env(&env, BYTES_LIT("AB"), BYTES_LIT("2"), &err), 0);
	assert_int_equal(strings_set_env(&env, BYTES_LIT("A"), BYTES_LIT("3=4"), &err), 0);
	assert_int_equal(strings_set_env(&env, BYTES_LIT("C"), (struct bytes){ 0 }, &err), 0);
	assert_int_equal(env.n, 3);
	assert_null(env.v[3]);
	assert_string_equal(strings_env(&env, "A"), "3=4");
	assert_string_equal(strings_env(&env, "AB"), "2");
	assert_string_equal(strings_env(&env, "C"), "");
	assert_int_equal(strings_set_env(&env, BYTES_LIT("X=Y"), BYTES_LIT("1"), &err), -1);
	assert_int_equal(strings_set_env(&env, (struct bytes){ 0 }, BYTES_LIT("1"), &err), -1);
	assert_int_equal(strings_set_env(&env, BYTES_LIT("N"), BYTES_LIT("a\0b"), &err), -1);
	assert_int_equal(env.n, 3);
}

static void lists_of_strings_are_bounded(void **state)
{
	AUTO(strings_done) struct strings s = { 0 };
	static uint8_t big[STRINGS_BYTES_MAX];
	struct err err = { 0 };

	(void)state;
	memset(big, 'x', sizeof(big));
	for (int i = 0; i < STRINGS_MAX; i++)
		assert_int_equal(strings_add(&s, BYTES_LIT("x"), &err), 0);
	assert_int_equal(strings_add(&s, BYTES_LIT("x"), &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	strings_done(&s);
	assert_int_equal(strings_add(&s, (struct bytes){ big, sizeof(big) - 3 }, &err), 0);
	assert_int_equal(strings_add(&s, BYTES_LIT("1234"), &err), -1);
	assert_int_equal(strings_add(&s, BYTES_LIT("123"), &err), 0);
}

static void an_end_has_exactly_the_fields_clients_compare(void **state)
{
	static const struct {
		const char *name;
		struct process_end end;
		const char *want;
	} rows[] = {
		{ "fine",
		  { .exited = true },
		  "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}" },
		{ "not fine",
		  { .exited = true, .code = 3 },
		  "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status "
		  "3\","
		  "\"error\":\"exit status 3\"}}}" },
		{ "killed",
		  { .signo = SIGKILL },
		  "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\","
		  "\"error\":\"signal: killed\"}}}" },
		{ "out of memory",
		  { .signo = SIGKILL, .oom = true },
		  "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\","
		  "\"error\":\"signal: killed (out of memory: killed by the kernel)\"}}}" },
		{ "out of memory, and fine nevertheless",
		  { .exited = true, .oom = true },
		  "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}" },
		{ "terminated",
		  { .signo = SIGTERM },
		  "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: terminated\","
		  "\"error\":\"signal: terminated\"}}}" },
		{ "core",
		  { .signo = SIGSEGV, .core = true },
		  "{\"event\":{\"end\":{\"exitCode\":-1,"
		  "\"status\":\"signal: segmentation fault (core dumped)\","
		  "\"error\":\"signal: segmentation fault (core dumped)\"}}}" },
		{ "no word for it",
		  { .signo = 40 },
		  "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: signal 40\","
		  "\"error\":\"signal: signal 40\"}}}" },
		{ "a hole in the words",
		  { .signo = SIGSTKFLT },
		  "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: signal 16\","
		  "\"error\":\"signal: signal 16\"}}}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(EVENT_JSON_MAX);
		struct err err = { 0 };

		assert_int_equal(event_put_end(&out, &row->end, &err), 0);
		assert_true(bytes_eq(buf_view(&out), bytes_str(row->want)));
	}
}

static void the_largest_piece_of_output_fits_its_message(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(EVENT_JSON_MAX);
	static uint8_t piece[EVENT_PIECE_MAX];
	struct err err = { 0 };

	(void)state;
	assert_int_equal(event_put_output(&out, PROCESS_STDERR,
					  (struct bytes){ piece, sizeof(piece) }, &err),
			 0);
	assert_true(
		bytes_starts(buf_view(&out), BYTES_LIT("{\"event\":{\"data\":{\"stderr\":\"AAAA")));
}

static void start_requests_are_read_leniently_and_checked(void **state)
{
	static const struct {
		const char *name, *json;
		bool ok, in, pty, tag;
		size_t args;
	} rows[] = {
		{ "least", "{\"process\":{\"cmd\":\"a\"}}", true, true, false, false, 1 },
		{ "as clients send it",
		  "{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"x\"],"
		  "\"envs\":{\"A\":\"1\"},\"cwd\":\"/tmp\"},\"stdin\":false}",
		  true, false, false, false, 4 },
		{ "terminal and tag",
		  "{\"process\":{\"cmd\":\"a\"},\"pty\":{\"size\":{\"cols\":80}},\"tag\":\"\"}",
		  true, true, true, true, 1 },
		{ "unknown members", "{\"process\":{\"cmd\":\"a\",\"x\":{}},\"y\":[1]}", true, true,
		  false, false, 1 },
		{ "nulls", "{\"process\":{\"cmd\":\"a\",\"args\":null,\"envs\":null},\"tag\":null}",
		  true, true, false, false, 1 },
		{ "no process", "{}" },
		{ "no command", "{\"process\":{}}" },
		{ "empty command", "{\"process\":{\"cmd\":\"\"}}" },
		{ "command is a number", "{\"process\":{\"cmd\":1}}" },
		{ "argument is a number", "{\"process\":{\"cmd\":\"a\",\"args\":[1]}}" },
		{ "args is a string", "{\"process\":{\"cmd\":\"a\",\"args\":\"b\"}}" },
		{ "stdin is a string", "{\"process\":{\"cmd\":\"a\"},\"stdin\":\"yes\"}" },
		{ "NUL", "{\"process\":{\"cmd\":\"a\\u0000b\"}}" },
		{ "not JSON", "{" },
		{ "too deep", "{\"process\":{\"cmd\":\"a\",\"x\":[[[[[[[[1]]]]]]]]}}" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(start_request_done) struct start_request r = { 0 };
		struct err err = { 0 };

		assert_int_equal(start_request_parse(bytes_str(row->json), 4096, &r, &err),
				 row->ok ? 0 : -1);
		if (!row->ok)
			continue;
		assert_int_equal(r.argv.n, row->args);
		assert_int_equal(r.has_stdin, row->in);
		assert_int_equal(r.has_pty, row->pty);
		assert_int_equal(r.has_tag, row->tag);
	}
}

static void a_command_line_is_cut_to_size(void **state)
{
	AUTO(start_request_done) struct start_request r = { 0 };
	char text[8];
	struct err err = { 0 };

	(void)state;
	assert_int_equal(strings_add(&r.argv, BYTES_LIT("abc"), &err), 0);
	start_request_text(&r, text, sizeof(text));
	assert_string_equal(text, "abc");
	assert_int_equal(strings_add(&r.argv, BYTES_LIT("defghi"), &err), 0);
	assert_int_equal(strings_add(&r.argv, BYTES_LIT("jkl"), &err), 0);
	start_request_text(&r, text, sizeof(text));
	assert_string_equal(text, "abc def");
}

static struct http1_head head_with(const char *name, const char *value, size_t times)
{
	struct http1_head h = { .n_fields = times };

	for (size_t i = 0; i < times; i++)
		h.fields[i] = (struct http1_field){ bytes_str(name), bytes_str(value) };
	return h;
}

static void tokens_must_be_the_same_and_there_once(void **state)
{
	static const struct {
		const char *name, *token, *field, *value;
		size_t times;
		bool ok;
	} rows[] = {
		{ "none needed", "", "x-access-token", "", 0, true },
		{ "none needed, one given", "", "x-access-token", "abc", 1, true },
		{ "right", "abc", "X-Access-Token", "abc", 1, true },
		{ "missing", "abc", "x-access-token", "", 0, false },
		{ "empty", "abc", "x-access-token", "", 1, false },
		{ "wrong", "abc", "x-access-token", "abd", 1, false },
		{ "prefix", "abc", "x-access-token", "ab", 1, false },
		{ "longer", "abc", "x-access-token", "abcd", 1, false },
		{ "other case", "abc", "x-access-token", "ABC", 1, false },
		{ "twice", "abc", "x-access-token", "abc", 2, false },
		{ "another field", "abc", "x-hotcell-control", "abc", 1, false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct http1_head h = head_with(row->field, row->value, row->times);
		struct session s = { 0 };

		assert_true(bytes_to_str(bytes_str(row->token), s.access_token,
					 sizeof(s.access_token)));
		assert_int_equal(access_client(&s, &h), row->ok);
	}
}

static void the_user_comes_from_basic_authorization(void **state)
{
	static const struct {
		const char *name, *value;
		size_t times;
		int rc;
		const char *want;
	} rows[] = {
		{ "none", "", 0, 0, "" },
		{ "user", "Basic dXNlcjo=", 1, 0, "user" },
		{ "with a password", "basic cm9vdDp4Onk=", 1, 0, "root" },
		{ "empty name", "Basic Og==", 1, 0, "" },
		{ "another scheme", "Bearer dXNlcjo=", 1, 0, "" },
		{ "no colon", "Basic dXNlcg==", 1, -1, "" },
		{ "not base64", "Basic !!!", 1, -1, "" },
		{ "only a scheme", "Basic", 1, -1, "" },
		{ "twice", "Basic dXNlcjo=", 2, -1, "" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct http1_head h = head_with("authorization", row->value, row->times);
		AUTO(buf_done) struct buf out = BUF_MAX(64);
		struct err err = { 0 };

		assert_int_equal(access_user(&h, &out, &err), row->rc);
		assert_true(bytes_eq(buf_view(&out), bytes_str(row->want)));
	}
}

static void options_of_pid_1_are_the_kernels(void **state)
{
	char name[] = "agent", single[] = "single", port[] = "--port", n[] = "0";
	char bad[] = "70000", none[] = "none", cgroup[] = "--cgroup";
	char *as_init[] = { name, single, NULL };
	char *as_server[] = { name, port, n, cgroup, none, NULL };
	char *wrong[] = { name, port, bad, NULL };
	struct agent_options o;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(options_parse(2, as_init, true, &o, &err), 0);
	assert_true(o.init && o.port == AGENT_PORT);
	assert_int_equal(options_parse(2, as_init, false, &o, &err), -1);
	assert_int_equal(options_parse(5, as_server, false, &o, &err), 0);
	assert_true(!o.init && o.port == 0 && !o.cgroup);
	assert_int_equal(options_parse(3, wrong, false, &o, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_mean_what_users_expect),
		cmocka_unit_test(a_path_that_is_too_long_is_refused),
		cmocka_unit_test(names_fit_into_a_header),
		cmocka_unit_test(the_last_value_of_a_variable_wins),
		cmocka_unit_test(lists_of_strings_are_bounded),
		cmocka_unit_test(an_end_has_exactly_the_fields_clients_compare),
		cmocka_unit_test(the_largest_piece_of_output_fits_its_message),
		cmocka_unit_test(start_requests_are_read_leniently_and_checked),
		cmocka_unit_test(a_command_line_is_cut_to_size),
		cmocka_unit_test(tokens_must_be_the_same_and_there_once),
		cmocka_unit_test(the_user_comes_from_basic_authorization),
		cmocka_unit_test(options_of_pid_1_are_the_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
