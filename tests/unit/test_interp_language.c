/* test_interp_language.c - names of languages, variables as code, bodies of requests, kernel.json.
 */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interp/kernel_spec.h"
#include "interp/wish.h"

static void names_are_normalized(void **state)
{
	static const struct {
		const char *name, *is;
	} rows[] = {
		{ "", "python" },       { "  ", "python" },     { "Python", "python" },
		{ "JS", "javascript" }, { "ts", "typescript" }, { " Bash ", "bash" },
		{ "../x", "../x" }, /* which is no folder: see below */
	};
	char is[KERNEL_NAME_MAX + 1], longest[KERNEL_NAME_MAX + 2];

	(void)state;
	FOR_ROWS(row, rows) {
		assert_true(language_normalize(bytes_str(row->name), is));
		assert_string_equal(is, row->is);
	}
	memset(longest, 'a', sizeof(longest));
	assert_true(language_normalize((struct bytes){ (uint8_t *)longest, KERNEL_NAME_MAX }, is));
	assert_false(
		language_normalize((struct bytes){ (uint8_t *)longest, KERNEL_NAME_MAX + 1 }, is));
	assert_false(language_normalize(BYTES_LIT("a\0b"), is));
}

static void variables_are_set_and_gone(void **state)
{
	static const struct {
		const char *name, *set, *reset;
	} rows[] = {
		{ "python",
		  "__import__('os').environ.update(__import__('json').loads("
		  "\"{\\\"A\\\": \\\"it's\\\", \\\"B.C\\\": \\\"\\\"}\"))\n",
		  "list(map(lambda n: __import__('os').environ.pop(n, None), "
		  "__import__('json').loads(\"[\\\"\\\", \\\"a=b\\\", \\\"B.C\\\"]\")))\n"
		  "__import__('os').environ.update(__import__('json').loads(\"{\\\"A\\\": "
		  "\\\"was\\\"}\"))\n" },
		{ "typescript",
		  "Object.assign(process.env, JSON.parse("
		  "\"{\\\"A\\\": \\\"it's\\\", \\\"B.C\\\": \\\"\\\"}\"))\n",
		  "JSON.parse(\"[\\\"\\\", \\\"a=b\\\", \\\"B.C\\\"]\").forEach((n) => delete "
		  "process.env[n])\n"
		  "Object.assign(process.env, JSON.parse(\"{\\\"A\\\": \\\"was\\\"}\"))\n" },
		{ "bash", "export A='it'\\''s'\n", "export A='was'\n" },
		{ "r", "Sys.setenv(\"A\" = \"it's\")\n", "Sys.setenv(\"A\" = \"was\")\n" },
		{ "java", "System.setProperty(\"A\", \"it's\");\n",
		  "System.setProperty(\"A\", \"was\");\n" },
		{ "unheard", "", "" },
	};
	AUTO(json_decrefp)
	json_t *env =
		json_pack("{s:s, s:s, s:s, s:s}", "A", "it's", "", "x", "a=b", "y", "B.C", "");
	AUTO(json_decrefp) json_t *before = json_pack("{s:s}", "A", "was");

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(buf_done) struct buf out = BUF_MAX(4096);
		struct err err;

		assert_int_equal(language_set_env(row->name, env, &out, &err), 0);
		assert_true(bytes_eq(buf_view(&out), bytes_str(row->set)));
		out.len = 0;
		assert_int_equal(language_reset_env(row->name, env, before, &out, &err), 0);
		assert_true(bytes_eq(buf_view(&out), bytes_str(row->reset)));
	}
}

static void code_of_ours_has_a_limit(void **state)
{
	AUTO(json_decrefp) json_t *env = json_pack("{s:s}", "A", "a value of some length");
	AUTO(buf_done) struct buf out = BUF_MAX(16);
	struct err err;

	(void)state;
	assert_int_equal(language_set_env("python", env, &out, &err), -1);
	assert_int_equal(language_set_env("bash", env, &out, &err), -1);
	assert_int_equal(language_reset_env("bash", env, env, &out, &err), -1);
}

static void bodies_of_executions(void **state)
{
	static const struct {
		const char *name, *body;
		bool ok;
	} rows[] = {
		{ "the least", "{\"code\":\"\"}", true },
		{ "all", "{\"code\":\"1\",\"context_id\":\"x\",\"env_vars\":{\"A\":\"b\"}}", true },
		{ "nulls",
		  "{\"code\":\"1\",\"context_id\":null,\"language\":null,\"env_vars\":null}",
		  true },
		{ "no code", "{}", false },
		{ "code that is none", "{\"code\":[]}", false },
		{ "a variable that is no string", "{\"code\":\"\",\"env_vars\":{\"A\":1}}", false },
		{ "variables that are none", "{\"code\":\"\",\"env_vars\":[]}", false },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		AUTO(json_decrefp) json_t *body = json_loads(row->body, 0, NULL);
		struct detail wrong;
		struct wish w;

		assert_int_equal(wish_to_execute(body, &w, &wrong), row->ok);
		if (row->ok)
			assert_string_equal(w.language, "python");
	}
}

static void write_spec(const char *dir, const char *name, const char *text)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/kernel.json", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void remove_spec(const char *dir, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s/kernel.json", dir, name);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(rmdir(path), 0);
}

static void kernels_are_found_or_refused(void **state)
{
	static const struct {
		const char *name, *text;
		enum err_code code; /* ERR_NONE: it is taken */
	} rows[] = {
		{ "good", "{\"argv\":[\"x\"],\"env\":{\"A\":\"b\"},\"interrupt_mode\":\"message\"}",
		  ERR_NONE },
		{ "no-argv", "{}", ERR_INVALID },
		{ "empty-argv", "{\"argv\":[]}", ERR_INVALID },
		{ "argv-of-numbers", "{\"argv\":[1]}", ERR_INVALID },
		{ "env-of-numbers", "{\"argv\":[\"x\"],\"env\":{\"A\":1}}", ERR_INVALID },
		{ "env-that-is-none", "{\"argv\":[\"x\"],\"env\":[\"A\"]}", ERR_INVALID },
		{ "an-array", "[]", ERR_INVALID },
		{ "no-json", "x", ERR_INVALID },
		{ "empty", "", ERR_INVALID },
	};
	char dir[] = "/tmp/hotcell-spec-XXXXXX";
	struct kernel_dirs dirs = { { "/nowhere", dir }, 2 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	FOR_ROWS(row, rows) {
		struct kernel_spec spec;
		struct err err = { 0 };

		write_spec(dir, row->name, row->text);
		assert_int_equal(kernel_spec_find(&dirs, row->name, &spec, &err),
				 row->code == ERR_NONE ? 0 : -1);
		if (row->code == ERR_NONE) {
			assert_true(spec.interrupt_message && !spec.ipc);
			kernel_spec_done(&spec);
		} else {
			assert_int_equal(err.code, row->code);
		}
		remove_spec(dir, row->name);
	}
	assert_int_equal(rmdir(dir), 0);
}

static void names_that_are_no_folders(void **state)
{
	static const struct {
		const char *name;
	} rows[] = { { "" },   { "." },  { ".." },  { "../tmp" },  { "a/b" },
		     { "-x" }, { ".x" }, { "a b" }, { "\xc3\xa9" } };
	struct kernel_dirs dirs = { { "/" }, 1 };

	(void)state;
	FOR_ROWS(row, rows) {
		struct kernel_spec spec;
		struct err err = { 0 };

		assert_int_equal(kernel_spec_find(&dirs, row->name, &spec, &err), -1);
		assert_int_equal(err.code, ERR_NOT_FOUND);
	}
}

static void what_is_no_file_is_not_waited_for(void **state)
{
	char dir[] = "/tmp/hotcell-spec-XXXXXX", path[256];
	struct kernel_dirs dirs = { { dir }, 1 };
	struct kernel_spec spec;
	struct err err = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/pipe", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/pipe/kernel.json", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(kernel_spec_find(&dirs, "pipe", &spec, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	remove_spec(dir, "pipe");
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_normalized),
		cmocka_unit_test(variables_are_set_and_gone),
		cmocka_unit_test(code_of_ours_has_a_limit),
		cmocka_unit_test(bodies_of_executions),
		cmocka_unit_test(kernels_are_found_or_refused),
		cmocka_unit_test(names_that_are_no_folders),
		cmocka_unit_test(what_is_no_file_is_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
