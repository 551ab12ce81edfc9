/* test_node_recipe.c - a build's steps: read, named, and said to a shell. */
#include "tests/unit/check.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/read_all.h"
#include "node/build/build_image.h"
#include "node/build/output_lines.h"
#include "node/build/step_key.h"
#include "node/build/step_script.h"

#define HASH "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct recipe r;
static struct build_context context;

static void read_recipe(const char *text)
{
	struct err err;

	recipe_done(&r);
	if (recipe_parse(bytes_str(text), &r, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
}

static int set_up(void **state)
{
	struct err err;

	(void)state;
	return build_context_init(&context, &err);
}

static int tear_down(void **state)
{
	(void)state;
	recipe_done(&r);
	build_context_done(&context);
	return 0;
}

/* --- reading ------------------------------------------------------------------------------ */

static void a_whole_recipe(void **state)
{
	(void)state;
	read_recipe("{\"fromImage\":\"debian:12\",\"force\":true,\"startCmd\":\"srv\",\"readyCmd\":"
		    "\"ok\","
		    "\"steps\":[{\"type\":\"run\",\"args\":[\"ls\",\"root\"],\"force\":true},"
		    "{\"type\":\"COPY\",\"args\":[\"a\",\"b\",\"\",\"\"],\"filesHash\":\"" HASH
		    "\",\"gzip\":false,\"forceUpload\":true}]}");
	assert_string_equal(r.image, "debian:12");
	assert_string_equal(r.parent, "");
	assert_true(r.force);
	assert_true(bytes_eq(r.start, BYTES_LIT("srv")) && bytes_eq(r.ready, BYTES_LIT("ok")));
	assert_int_equal(r.n, 2);
	assert_int_equal(r.steps[0].kind, RECIPE_RUN);
	assert_true(r.steps[0].force && !r.steps[1].force);
	assert_true(bytes_eq(recipe_arg(&r.steps[0], 1), BYTES_LIT("root")));
	assert_int_equal(recipe_arg(&r.steps[0], 2).len, 0);
	assert_string_equal(r.steps[1].files, HASH);
	assert_null(r.sealed);
}

static void credentials_come_sealed(void **state)
{
	(void)state;
	read_recipe("{\"fromImage\":\"a\",\"sealed\":\"c2VhbGVk\"}");
	assert_string_equal(r.sealed, "c2VhbGVk");
}

static void an_archive_takes_the_place_of_an_image(void **state)
{
	(void)state;
	read_recipe("{\"fromArchive\":true}");
	assert_true(r.archive);
	assert_string_equal(r.image, "");
	read_recipe("{\"fromImage\":\"a\",\"fromArchive\":false}");
	assert_false(r.archive);
}

static const struct {
	const char *text, *says;
} refused[] = {
	{ "[]", "object" },
	{ "{}", "one of them" },
	{ "{\"fromArchive\":false}", "one of them" },
	{ "{\"fromArchive\":true,\"fromImage\":\"a\"}", "one of them" },
	{ "{\"fromArchive\":true,\"fromTemplate\":\"a\"}", "one of them" },
	{ "{\"fromArchive\":\"/etc/passwd\"}", "fromArchive" },
	{ "{\"fromArchive\":true,\"sealed\":\"x\"}", "without an image" },
	{ "{\"fromImage\":\"a\",\"fromTemplate\":\"b\"}", "one of them" },
	{ "{\"fromImage\":1}", "fromImage" },
	{ "{\"fromImage\":\"a\",\"registry\":{\"username\":\"u\",\"password\":\"p\"}}",
	  "not sealed" },
	{ "{\"fromImage\":\"a\",\"sealed\":\"x\",\"registry\":{}}", "not sealed" },
	{ "{\"fromImage\":\"a\",\"sealed\":{\"password\":\"p\"}}", "sealed must be" },
	{ "{\"fromTemplate\":\"a\",\"sealed\":\"x\"}", "without an image" },
	{ "{\"fromImage\":\"a\",\"steps\":[1]}", "step 1" },
	{ "{\"fromImage\":\"a\",\"steps\":[{\"args\":[]}]}", "type" },
	{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"ADD\",\"args\":[\"a\"]}]}", "'ADD'" },
	{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"RUN\"}]}", "0 arguments" },
	{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"RUN\",\"args\":[1]}]}", "no string" },
	{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"ENV\",\"args\":[\"A\",\"b\",\"C\"]}]}",
	  "key and value" },
	{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"ENV\",\"args\":[\"A;ls\",\"b\"]}]}",
	  "no name of a variable" },
	{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\"]}]}",
	  "requires files hash" },
	{ "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"COPY\",\"args\":[\"a\",\"b\"],"
	  "\"filesHash\":\"../../x\"}]}",
	  "no SHA-256" },
};

static void what_is_refused(void **state)
{
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(refused); i++) {
		if (recipe_parse(bytes_str(refused[i].text), &r, &err) == 0)
			fail_msg("taken: %s", refused[i].text);
		assert_int_equal(err.code, ERR_INVALID);
		if (!strstr(err.msg, refused[i].says))
			fail_msg("%s: \"%s\" lacks \"%s\"", refused[i].text, err.msg,
				 refused[i].says);
	}
}

static void a_step_is_said_in_short(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(1024);
	struct err err;

	(void)state;
	read_recipe(
		"{\"fromImage\":\"a\",\"steps\":[{\"type\":\"RUN\",\"args\":[\"echo 123456\"]}]}");
	assert_int_equal(recipe_say(&r.steps[0], 9, &out, &err), 0);
	assert_memory_equal(out.ptr, "RUN echo ", 9);
	assert_int_equal(out.len, 9);
}

/* --- keys --------------------------------------------------------------------------------- */

static const char *key_of(const char *args, char ret[static STEP_KEY_LENGTH + 1])
{
	AUTO(buf_done) struct buf text = BUF_MAX(4096);
	struct err err;

	assert_int_equal(buf_printf(&text, &err, "{\"fromImage\":\"a\",\"steps\":[%s]}", args), 0);
	assert_int_equal(buf_add(&text, BYTES_LIT("\0"), &err), 0);
	read_recipe((const char *)text.ptr);
	step_key_first("team", "image", ret);
	for (size_t i = 0; i < r.n; i++)
		step_key_next(&r.steps[i], ret);
	return ret;
}

static void keys_differ_where_steps_do(void **state)
{
	static const char *const differ[] = {
		"{\"type\":\"RUN\",\"args\":[\"a\",\"b\"]}",
		"{\"type\":\"RUN\",\"args\":[\"ab\",\"\"]}",
		"{\"type\":\"RUN\",\"args\":[\"ab\"]}",
		"{\"type\":\"ENV\",\"args\":[\"a\",\"b\"]}",
		"{\"type\":\"RUN\",\"args\":[\"a\"]},{\"type\":\"RUN\",\"args\":[\"b\"]}",
		"{\"type\":\"COPY\",\"args\":[\"a\",\"b\"],\"filesHash\":\"" HASH "\"}",
		"{\"type\":\"RUN\",\"args\":[\"a\"]}",
	};
	char keys[COUNT(differ)][STEP_KEY_LENGTH + 1], again[STEP_KEY_LENGTH + 1];

	(void)state;
	for (size_t i = 0; i < COUNT(differ); i++) {
		key_of(differ[i], keys[i]);
		assert_int_equal(strlen(keys[i]), STEP_KEY_LENGTH);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(keys[i], keys[j]);
	}
	/* how it is run is not what it is */
	assert_string_equal(key_of("{\"type\":\"run\",\"args\":[\"a\"],\"force\":true}", again),
			    keys[COUNT(differ) - 1]);
	step_key_first("other", "image", again);
	step_key_first("team", "image", keys[0]);
	assert_string_not_equal(again, keys[0]);
}

/* --- scripts, run by a real bash ---------------------------------------------------------- */

/* Runs it in /bin/bash without privileges of its own. What it printed; its status. */
static int run(struct bytes script, struct buf *out)
{
	AUTO(buf_done) struct buf text = BUF_MAX(STEP_SCRIPT_MAX);
	char name[] = "bash", option[] = "-c", path[] = "PATH=/usr/bin:/bin", old[] = "OLD=before";
	char *argv[] = { name, option, NULL, NULL };
	char *const env[] = { path, old, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2], status;
	struct err err;
	pid_t pid;

	assert_int_equal(buf_add(&text, script, &err), 0);
	assert_int_equal(buf_add(&text, BYTES_LIT("\0"), &err), 0);
	argv[2] = (char *)text.ptr;
	assert_int_equal(pipe(fds), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	posix_spawn_file_actions_addclose(&actions, fds[0]);
	assert_int_equal(posix_spawn(&pid, "/bin/bash", &actions, NULL, argv, env), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	assert_int_equal(read_all(fds[0], out, &err), 0);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void any_text_is_one_word(void **state)
{
	static const char *const texts[] = { "",   "a b",  "'",        "''a'", "$(touch x)`ls`",
					     "\\", "a\nb", "\"$HOME\"" };
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		AUTO(buf_done) struct buf script = BUF_MAX(4096);
		AUTO(buf_done) struct buf out = BUF_MAX(4096);

		assert_int_equal(buf_add(&script, BYTES_LIT("printf '%s' "), &err), 0);
		assert_int_equal(shell_quote(bytes_str(texts[i]), &script, &err), 0);
		assert_int_equal(run(buf_view(&script), &out), 0);
		if (!bytes_eq(buf_view(&out), bytes_str(texts[i])))
			fail_msg("%s became %.*s", texts[i], (int)out.len, out.ptr);
	}
}

static const char *env_of(const char *name)
{
	return json_string_value(json_object_get(context.env, name));
}

static void an_env_reads_variables_and_runs_nothing(void **state)
{
	AUTO(buf_done) struct buf script = BUF_MAX(4096);
	AUTO(buf_done) struct buf out = BUF_MAX(4096);
	struct err err;

	(void)state;
	read_recipe("{\"fromImage\":\"a\",\"steps\":[{\"type\":\"ENV\",\"args\":["
		    "\"A\",\"${OLD}/x\",\"B\",\"$A:y\",\"C\",\"$(echo no)`echo "
		    "no`\",\"D\",\"a\\\"b\\\\c\","
		    "\"E\",\"line\\nline\\n\"]}]}");
	assert_int_equal(step_script(&r.steps[0], &context, &script, &err), 0);
	assert_int_equal(run(buf_view(&script), &out), 0);
	assert_int_equal(step_leaves(&r.steps[0], buf_view(&out), &context, &err), 0);
	assert_string_equal(env_of("A"), "before/x");
	assert_string_equal(env_of("B"), "before/x:y");
	assert_string_equal(env_of("C"), "$(echo no)`echo no`");
	assert_string_equal(env_of("D"), "a\"b\\c");
	assert_string_equal(env_of("E"), "line\nline\n");
}

static void a_workdir_is_made_and_is_absolute(void **state)
{
	AUTO(buf_done) struct buf script = BUF_MAX(4096);
	AUTO(buf_done) struct buf out = BUF_MAX(4096);
	char dir[] = "/tmp/hotcell-recipe-XXXXXX", want[64];
	struct err err;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(build_context_set_workdir(&context, bytes_str(dir), &err), 0);
	assert_int_equal(build_context_set_user(&context, BYTES_LIT("root"), &err), 0);
	read_recipe(
		"{\"fromImage\":\"a\",\"steps\":[{\"type\":\"WORKDIR\",\"args\":[\"it's/a b\"]}]}");
	/* whatever an ENV has made of it */
	assert_int_equal(buf_add(&script, BYTES_LIT("PATH=/nowhere\n"), &err), 0);
	assert_int_equal(step_script(&r.steps[0], &context, &script, &err), 0);
	assert_int_equal(run(buf_view(&script), &out), 0);
	assert_int_equal(step_leaves(&r.steps[0], buf_view(&out), &context, &err), 0);
	snprintf(want, sizeof(want), "%s/it's/a b", dir);
	assert_string_equal(context.workdir, want);
	assert_int_equal(rmdir(want), 0);
	snprintf(want, sizeof(want), "%s/it's", dir);
	assert_int_equal(rmdir(want), 0);
	assert_int_equal(rmdir(dir), 0);
}

static const struct {
	const char *step, *has; /* NULL: refused */
} copies[] = {
	{ "\"folder/*\",\"folder\"", "from='folder'\nto='folder'\nowner='user:user'\nmode=''\n" },
	{ "\"./a//b.txt\",\"/x/\",\"root\",\"0755\"",
	  "from='a/b.txt'\nto='/x/'\nowner='root:root'\nmode='0755'\n" },
	{ "\"*.txt\",\"/x\",\"a:b\"", "from=''\nto='/x'\nowner='a:b'\n" },
	{ "\"a/../../b\",\"/x\"", NULL },
	{ "\"a\",\"/x\",\"\",\"u+s\"", NULL },
};

static void what_a_copy_takes(void **state)
{
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(copies); i++) {
		AUTO(buf_done) struct buf text = BUF_MAX(4096);
		AUTO(buf_done) struct buf script = BUF_MAX(STEP_SCRIPT_MAX);

		assert_int_equal(buf_printf(&text, &err,
					    "{\"fromImage\":\"a\",\"steps\":[{\"type\":\"COPY\","
					    "\"args\":[%s],\"filesHash\":\"" HASH "\"}]}",
					    copies[i].step),
				 0);
		assert_int_equal(buf_add(&text, BYTES_LIT("\0"), &err), 0);
		read_recipe((const char *)text.ptr);
		if (!copies[i].has) {
			assert_int_equal(step_script(&r.steps[0], &context, &script, &err), -1);
			continue;
		}
		assert_int_equal(step_script(&r.steps[0], &context, &script, &err), 0);
		assert_int_equal(buf_add(&script, BYTES_LIT("\0"), &err), 0);
		if (!strstr((const char *)script.ptr, copies[i].has))
			fail_msg("%s: %s", copies[i].step, script.ptr);
	}
}

static void as_whom(void **state)
{
	(void)state;
	read_recipe("{\"fromImage\":\"a\",\"steps\":[{\"type\":\"RUN\",\"args\":[\"a\"]},"
		    "{\"type\":\"RUN\",\"args\":[\"a\",\"bob\"]},{\"type\":\"USER\",\"args\":["
		    "\"eve\"]}]}");
	assert_true(bytes_eq(step_user(&r.steps[0], &context), BYTES_LIT("user")));
	assert_true(bytes_eq(step_user(&r.steps[1], &context), BYTES_LIT("bob")));
	assert_true(bytes_eq(step_user(&r.steps[2], &context), BYTES_LIT("root")));
}

static void names_that_no_user_has(void **state)
{
	static const char *const bad[] = { "", "-x", "a b", "a:b", "a\nb" };
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(build_context_set_user(&context, bytes_str(bad[i]), &err), -1);
	assert_string_equal(context.user, "user");
}

/* --- what is kept of it ------------------------------------------------------------------- */

static void a_context_comes_back(void **state)
{
	AUTO(buf_done) struct buf out = BUF_MAX(BUILD_CONTEXT_MAX);
	struct build_context back;
	struct err err;

	(void)state;
	assert_int_equal(build_context_set_env(&context, BYTES_LIT("A"), BYTES_LIT("b"), &err), 0);
	assert_int_equal(build_context_set_workdir(&context, BYTES_LIT("/app"), &err), 0);
	assert_int_equal(
		build_context_set_commands(&context, BYTES_LIT("srv"), BYTES_LIT("ok"), &err), 0);
	/* none: those of the parent stay */
	assert_int_equal(build_context_set_commands(&context, (struct bytes){ 0 },
						    (struct bytes){ 0 }, &err),
			 0);
	assert_int_equal(build_context_put(&context, &out, &err), 0);
	assert_int_equal(build_context_parse(buf_view(&out), &back, &err), 0);
	assert_string_equal(back.user, "user");
	assert_string_equal(back.workdir, "/app");
	assert_string_equal(back.start, "srv");
	assert_string_equal(back.ready, "ok");
	assert_true(json_equal(back.env, context.env));
	build_context_done(&back);
	/* a ready command alone: what the parent started is not */
	assert_int_equal(
		build_context_set_commands(&context, (struct bytes){ 0 }, BYTES_LIT("x"), &err), 0);
	assert_null(context.start);
}

/* Who builds is told, not who creates. */
static void guarded_ports_are_checked(void **state)
{
	const struct bytes name = BYTES_LIT("HOTCELL_GUARDED_PORTS");
	struct err err;

	(void)state;
	assert_int_equal(build_context_set_env(&context, name, BYTES_LIT("9222/devtools"), &err),
			 0);
	assert_int_equal(build_context_set_env(&context, name, BYTES_LIT("devtools"), &err), -1);
	assert_non_null(strstr(err.msg, "HOTCELL_GUARDED_PORTS: ports are numbers"));
	assert_string_equal(
		json_string_value(json_object_get(context.env, "HOTCELL_GUARDED_PORTS")),
		"9222/devtools");
}

static void that_refusals_are_pages_is_yes_or_no(void **state)
{
	const struct bytes name = BYTES_LIT("HOTCELL_REFUSAL_PAGES");
	struct err err;

	(void)state;
	assert_false(build_context_shows_pages(&context));
	assert_int_equal(build_context_set_env(&context, name, BYTES_LIT("yes"), &err), 0);
	assert_true(build_context_shows_pages(&context));
	assert_int_equal(build_context_set_env(&context, name, BYTES_LIT("true"), &err), -1);
	assert_non_null(strstr(err.msg, "HOTCELL_REFUSAL_PAGES: yes or no"));
	assert_int_equal(build_context_set_env(&context, name, BYTES_LIT("no"), &err), 0);
	assert_false(build_context_shows_pages(&context));
	assert_int_equal(build_context_set_env(&context, name, (struct bytes){ 0 }, &err), 0);
	assert_false(build_context_shows_pages(&context));
}

/* --- output ------------------------------------------------------------------------------- */

static void add_line(void *to, struct bytes line)
{
	struct buf *all = to;
	struct err err;

	assert_int_equal(buf_add(all, line, &err), 0);
	assert_int_equal(buf_add(all, BYTES_LIT("|"), &err), 0);
	assert_true(line.len > 0 && line.len <= OUTPUT_LINE_MAX);
}

static const struct {
	const char *said, *lines;
} outputs[] = {
	{ "", "" },
	{ "\n\n \t\n", "" },
	{ "one\ntwo", "one|two|" },
	{ " padded \r\n", "padded|" },
	{ "10%\r50%\r100%\r\nnext\n", "100%|next|" },
};

static void output_in_any_pieces(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(outputs); i++) {
		struct bytes said = bytes_str(outputs[i].said);

		for (size_t cut = 0; cut <= said.len; cut++) {
			AUTO(buf_done) struct buf all = BUF_MAX(4096);
			struct output_lines o = { 0 };

			output_lines_add(&o, bytes_head(said, cut), add_line, &all);
			output_lines_add(&o, bytes_tail(said, cut), add_line, &all);
			output_lines_end(&o, add_line, &all);
			if (!bytes_eq(buf_view(&all), bytes_str(outputs[i].lines)))
				fail_msg("row %zu, cut at %zu: %.*s", i, cut, (int)all.len,
					 (const char *)all.ptr);
		}
	}
}

/* No character is cut in two, and nothing is lost. */
static void a_line_that_is_too_long(void **state)
{
	AUTO(buf_done) struct buf all = BUF_MAX(64 * 1024);
	struct output_lines o = { 0 };
	size_t stops = 0;

	(void)state;
	for (size_t i = 0; i < 2000; i++)
		output_lines_add(&o, BYTES_LIT("\xe2\x82\xac"), add_line, &all);
	output_lines_end(&o, add_line, &all);
	for (size_t i = 0; i < all.len; i++) {
		stops += all.ptr[i] == '|';
		if (all.ptr[i] == '|' && i + 1 < all.len)
			assert_int_equal(all.ptr[i + 1], 0xe2);
	}
	assert_int_equal(all.len - stops, 6000);
	assert_int_equal(stops, 6);
}

/* --- an image ----------------------------------------------------------------------------- */

#define DIGEST_A "sha256:" HASH
#define DIGEST_B "sha256:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void take_image(struct build_image *i, const char *digest, const char *config)
{
	struct err err;

	if (build_image_take(i, digest, bytes_str(config), &context, &err) < 0)
		fail_msg("%s: %s", config, err.msg);
}

/* Between the look at the registry and the fetch: the ground is that of what was fetched. */
static void a_tag_that_moves_on_the_way(void **state)
{
	char first[BUILD_SOURCE_MAX + 1], then[BUILD_SOURCE_MAX + 1];
	struct build_image i = { 0 };

	(void)state;
	take_image(&i, DIGEST_A, "{\"env\":[\"OLD=1\",\"A=1\"],\"repository\":\"" HASH "\"}");
	build_image_source(&i, 512, "agent", first);
	take_image(&i, DIGEST_B, "{\"env\":[\"A=2\"],\"repository\":\"" HASH "\"}");
	build_image_source(&i, 512, "agent", then);
	assert_non_null(strstr(first, DIGEST_A));
	assert_null(strstr(then, DIGEST_A));
	assert_non_null(strstr(then, DIGEST_B));
	assert_int_equal(json_object_size(context.env), 1);
	assert_string_equal(json_string_value(json_object_get(context.env, "A")), "2");
}

/* Who has all texts of a private image, and a registry of their own, has not its ground. */
static void the_same_image_of_another_repository(void **state)
{
	char one[BUILD_SOURCE_MAX + 1], other[BUILD_SOURCE_MAX + 1];
	struct build_image i = { 0 };
	struct err err;

	(void)state;
	take_image(&i, DIGEST_A, "{\"repository\":\"" HASH "\"}");
	build_image_source(&i, 512, "agent", one);
	take_image(&i, DIGEST_A,
		   "{\"repository\":\"f123456789abcdef0123456789abcdef0123456789abcdef0123456789"
		   "abcdef\"}");
	build_image_source(&i, 512, "agent", other);
	assert_string_not_equal(one, other);
	assert_int_equal(build_image_take(&i, DIGEST_A, BYTES_LIT("{}"), &context, &err), -1);
	assert_int_equal(
		build_image_take(&i, DIGEST_A, BYTES_LIT("{\"repository\":\"\"}"), &context, &err),
		-1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_whole_recipe),
		TEST(credentials_come_sealed),
		TEST(an_archive_takes_the_place_of_an_image),
		TEST(what_is_refused),
		TEST(a_step_is_said_in_short),
		TEST(keys_differ_where_steps_do),
		TEST(any_text_is_one_word),
		TEST(an_env_reads_variables_and_runs_nothing),
		TEST(a_workdir_is_made_and_is_absolute),
		TEST(what_a_copy_takes),
		TEST(as_whom),
		TEST(names_that_no_user_has),
		TEST(a_context_comes_back),
		TEST(guarded_ports_are_checked),
		TEST(that_refusals_are_pages_is_yes_or_no),
		TEST(output_in_any_pieces),
		TEST(a_line_that_is_too_long),
		TEST(a_tag_that_moves_on_the_way),
		TEST(the_same_image_of_another_repository),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
