/* test_agent_env_file.c - /etc/environment as PAM reads it, and as anybody may have left it. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "agent/machine/env_file.h"

static void lines_become_variables(void **state)
{
	static const struct {
		const char *name, *text, *first; /* first: the first entry; NULL: none */
	} rows[] = {
		{ "nothing", "", NULL },
		{ "plain", "A=b\n", "A=b" },
		{ "no line end", "A=b", "A=b" },
		{ "double quotes", "A=\"b c\"\n", "A=b c" },
		{ "single quotes", "A='b c'\n", "A=b c" },
		{ "one quote", "A=\"\n", "A=\"" },
		{ "mixed quotes", "A=\"b'\n", "A=\"b'" },
		{ "empty", "A=\n", "A=" },
		{ "export", "export  A=b\n", "A=b" },
		{ "blanks", "  A=b  \n", "A=b" },
		{ "equals in it", "A=b=c\n", "A=b=c" },
		{ "comment", "#A=b\n  # C=d\n", NULL },
		{ "no name", "=b\n", NULL },
		{ "no value", "A\n", NULL },
		{ "not a name", "A B=c\n1A=b\nA-B=c\n", NULL },
		{ "the last wins", "A=b\nA=c\n", "A=c" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(strings_done) struct strings env = { 0 };
		struct err err = { 0 };

		assert_int_equal(env_file_parse(bytes_str(row->text), &env, &err), 0);
		assert_int_equal(env.n, row->first ? 1 : 0);
		if (row->first)
			assert_string_equal(env.v[0], row->first);
	}
}

static void a_nul_is_no_variable(void **state)
{
	AUTO(strings_done) struct strings env = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(env_file_parse(BYTES_LIT("A=b\0c\nD=e\n\0=x\n"), &env, &err), 0);
	assert_int_equal(env.n, 1);
	assert_string_equal(env.v[0], "D=e");
}

static void what_is_no_file_adds_nothing(void **state)
{
	AUTO(strings_done) struct strings env = { 0 };
	char path[] = "/tmp/hotcell-env-XXXXXX";
	struct err err = { 0 };
	int fd;

	(void)state;
	assert_int_equal(env_file_add("/no/such/file", &env, &err), 0);
	assert_int_equal(env_file_add("/", &env, &err), 0);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "A=b\n", 4), 4);
	assert_int_equal(env_file_add(path, &env, &err), 0);
	assert_int_equal(env.n, 1);
	assert_int_equal(ftruncate(fd, ENV_FILE_MAX + 1), 0);
	assert_int_equal(env_file_add(path, &env, &err), 0);
	close(fd);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0); /* nobody will ever write to it */
	assert_int_equal(env_file_add(path, &env, &err), 0);
	unlink(path);
	assert_int_equal(env.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_become_variables),
		cmocka_unit_test(a_nul_is_no_variable),
		cmocka_unit_test(what_is_no_file_adds_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
