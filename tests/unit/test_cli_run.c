/* test_cli_run.c - lines of an execution, events, what a terminal is given, files of results. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "base/read_all.h"
#include "cli/run_event.h"
#include "cli/run_files.h"
#include "cli/run_out.h"

/* --- lines ---------------------------------------------------------------------------------- */

static void lines_are_the_same_however_they_come(void **state)
{
	static const char text[] = "one\n\ntwo two\nthree\nrest";

	(void)state;
	for (size_t step = 1; step < sizeof(text); step++) {
		AUTO(buf_done) struct buf all = BUF_MAX(64);
		struct run_lines l = { 0 };
		struct err err = { 0 };
		struct bytes left = bytes_str(text), line;

		while (left.len > 0) {
			struct bytes piece = bytes_head(left, step);

			left = bytes_tail(left, step);
			while (run_lines_next(&l, &piece, &line, &err) == 1) {
				assert_int_equal(buf_add(&all, line, &err), 0);
				assert_int_equal(buf_add(&all, BYTES_LIT("|"), &err), 0);
			}
		}
		assert_true(bytes_eq(buf_view(&all), BYTES_LIT("one||two two|three|")));
		assert_true(run_lines_rest(&l));
		run_lines_done(&l);
	}
}

static void a_line_without_end_is_refused_at_its_limit(void **state)
{
	enum { MIB = 1024 * 1024 };
	AUTO(auto_free) uint8_t *much = calloc(1, MIB);
	struct run_lines l = { 0 };
	struct err err = { 0 };
	struct bytes piece, line;

	(void)state;
	assert_non_null(much);
	for (int i = 0; i < RUN_LINE_MAX / MIB; i++) {
		piece = (struct bytes){ much, MIB };
		assert_int_equal(run_lines_next(&l, &piece, &line, &err), 0);
	}
	piece = (struct bytes){ much, 1 };
	assert_int_equal(run_lines_next(&l, &piece, &line, &err), -1);
	assert_string_equal(err.msg, "an event of more than 128 MiB");
	run_lines_done(&l);
}

static void a_large_line_leaves_no_memory_behind(void **state)
{
	AUTO(auto_free) uint8_t *much = calloc(1, 2 * RUN_LINE_KEPT);
	struct run_lines l = { 0 };
	struct err err = { 0 };
	struct bytes piece = { much, 2 * RUN_LINE_KEPT }, line;

	(void)state;
	assert_int_equal(run_lines_next(&l, &piece, &line, &err), 0);
	piece = BYTES_LIT("\n");
	assert_int_equal(run_lines_next(&l, &piece, &line, &err), 1);
	assert_int_equal(line.len, 2 * RUN_LINE_KEPT);
	assert_int_equal(run_lines_next(&l, &piece, &line, &err), 0);
	assert_true(l.part.cap <= RUN_LINE_KEPT);
	run_lines_done(&l);
}

/* --- events --------------------------------------------------------------------------------- */

static void read_event(const char *line, struct run_event *ret)
{
	struct err err = { 0 };

	assert_int_equal(run_event_read(bytes_str(line), ret, &err), 0);
}

static void events_have_what_is_of_the_right_kind(void **state)
{
	struct run_event e;

	(void)state;
	read_event("{\"type\":\"stdout\",\"text\":\"a\\n\",\"timestamp\":\"x\"}", &e);
	assert_int_equal(e.type, RUN_STDOUT);
	assert_true(bytes_eq(e.member[RUN_TEXT], BYTES_LIT("a\\n")));
	read_event(
		"{\"type\":\"result\",\"text\":5,\"png\":null,\"chart\":{\"a\":[]},\"json\":null}",
		&e);
	assert_int_equal(e.type, RUN_RESULT);
	assert_false(run_event_has(&e, RUN_TEXT) || run_event_has(&e, RUN_PNG) ||
		     run_event_has(&e, RUN_JSON));
	assert_true(bytes_eq(e.member[RUN_CHART], BYTES_LIT("{\"a\":[]}")));
	read_event("{\"type\":\"keepalive\"}", &e);
	assert_int_equal(e.type, RUN_OTHER);
	read_event("{\"type\":\"sandbox\",\"sandboxID\":\"not-yours-to-say\"}", &e);
	assert_int_equal(e.type, RUN_OTHER);
}

static void what_is_no_event_is_refused(void **state)
{
	static const struct {
		const char *name, *line;
	} rows[] = { { "empty", "" },
		     { "text", "hello" },
		     { "array", "[1]" },
		     { "without a type", "{\"text\":\"a\"}" },
		     { "with a number for a type", "{\"type\":1}" },
		     { "cut off", "{\"type\":\"stdout\"" } };
	struct run_event e;

	(void)state;
	FOR_ROWS(row, rows) {
		struct err err = { 0 };

		assert_int_equal(run_event_read(bytes_str(row->line), &e, &err), -1);
		assert_int_equal(strncmp(err.msg, "an event that is none: ", 23), 0);
	}
}

static void a_terminal_is_given_no_commands(void **state)
{
	uint8_t text[] = "a\tb\r\n\x1b[2J\x07\x7f\xc2\x9b"
			 "31m\xc3\xa9\xc2\xa0z";

	(void)state;
	run_out_clean(text, sizeof(text) - 1);
	assert_string_equal((char *)text, "a\tb\r\n?[2J????31m\xc3\xa9\xc2\xa0z");
}

/* --- files ---------------------------------------------------------------------------------- */

struct folder {
	char path[32];
	struct run_files f;
	char said[256]; /* names of files, one behind the other */
};

static void on_file(struct run_files *f, const char *name)
{
	struct folder *d = CONTAINER_OF(f, struct folder, f);
	size_t len = strlen(d->said);

	snprintf(d->said + len, sizeof(d->said) - len, "%s ", name);
}

static int begin(void **state)
{
	struct folder *d = calloc(1, sizeof(*d));
	struct err err;

	*state = d;
	snprintf(d->path, sizeof(d->path), "/tmp/hotcell-run-XXXXXX");
	if (!mkdtemp(d->path))
		return -1;
	d->f = (struct run_files){ .on_file = on_file };
	return run_files_open(&d->f, d->path, "/some/where/plot.v2.py", &err);
}

static int end(void **state)
{
	struct folder *d = *state;
	struct err err;
	AUTO(auto_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = folder_remove(tmp, strrchr(d->path, '/') + 1, &err);

	run_files_close(&d->f);
	free(d);
	return rc;
}

static int add(struct folder *d, const char *line, struct err *err)
{
	struct run_event e;

	read_event(line, &e);
	return run_files_add(&d->f, &e, err);
}

static void must_hold(const struct folder *d, const char *name, const char *want)
{
	char text[256];

	assert_true(read_text(d->f.dir, name, text, sizeof(text)) >= 0);
	assert_string_equal(text, want);
}

static void a_result_is_written_as_what_it_is(void **state)
{
	struct folder *d = *state;
	struct err err = { 0 };

	assert_int_equal(
		add(d,
		    "{\"type\":\"result\",\"text\":\"<Figure>\",\"png\":\"aGVs\\nbG8=\\n\","
		    "\"svg\":\"<svg>\\u00e9</svg>\",\"chart\":{\"type\": \"line\"}}",
		    &err),
		3);
	assert_int_equal(add(d, "{\"type\":\"result\",\"text\":\"5\"}", &err), 0);
	assert_int_equal(add(d,
			     "{\"type\":\"result\",\"html\":\"<b>\",\"pdf\":\"aGk\","
			     "\"jpeg\":\"\"}",
			     &err),
			 3);
	assert_string_equal(d->said, "plot.v2-1.png plot.v2-1.svg plot.v2-1.chart.json "
				     "plot.v2-2.jpeg plot.v2-2.pdf plot.v2-2.html ");
	must_hold(d, "plot.v2-1.png", "hello");
	must_hold(d, "plot.v2-1.svg", "<svg>\xc3\xa9</svg>");
	must_hold(d, "plot.v2-1.chart.json", "{\"type\": \"line\"}\n");
	must_hold(d, "plot.v2-2.pdf", "hi");
	must_hold(d, "plot.v2-2.html", "<b>");
}

static void what_is_there_is_not_overwritten(void **state)
{
	struct folder *d = *state;
	struct err err = { 0 };
	int fd = openat(d->f.dir, "plot.v2-1.png", O_CREAT | O_WRONLY, 0600);

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(symlinkat("victim", d->f.dir, "plot.v2-2.png"), 0);
	assert_int_equal(add(d, "{\"type\":\"result\",\"png\":\"aGk=\"}", &err), 1);
	assert_string_equal(d->said, "plot.v2-3.png ");
	must_hold(d, "plot.v2-1.png", "");
	assert_int_equal(faccessat(d->f.dir, "victim", F_OK, 0), -1);
}

static void what_is_not_whole_does_not_stay(void **state)
{
	static const struct {
		const char *name, *png;
	} rows[] = { { "not base64", "a!Gk" },
		     { "one character too many", "aGkxa" },
		     { "something behind its end", "aGk=aGk=" },
		     { "an end in the middle", "aG=k" } };
	struct folder *d = *state;

	FOR_ROWS(row, rows) {
		char line[64];
		struct err err = { 0 };

		snprintf(line, sizeof(line), "{\"type\":\"result\",\"png\":\"%s\"}", row->png);
		assert_int_equal(add(d, line, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
		assert_int_equal(faccessat(d->f.dir, "plot.v2-1.png", F_OK, 0), -1);
	}
	assert_string_equal(d->said, "");
}

static void files_of_one_execution_are_counted(void **state)
{
	struct folder *d = *state;
	struct err err = { 0 };

	d->f.n = RUN_FILES_MAX;
	assert_int_equal(add(d, "{\"type\":\"result\",\"png\":\"aGk=\"}", &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	d->f.n = 0;
	d->f.bytes = RUN_FILES_BYTES_MAX;
	assert_int_equal(add(d, "{\"type\":\"result\",\"png\":\"aGk=\"}", &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	assert_string_equal(d->said, "");
}

/* Longer than a piece, and with blanks where pieces meet. */
static void a_large_picture_is_whole(void **state)
{
	enum { CHARACTERS = 300 * 1000 };
	struct folder *d = *state;
	AUTO(buf_done) struct buf line = BUF_MAX(1024 * 1024);
	struct run_event e;
	struct err err = { 0 };
	struct stat st;

	assert_int_equal(buf_add(&line, BYTES_LIT("{\"type\":\"result\",\"png\":\""), &err), 0);
	for (int i = 0; i < CHARACTERS; i++)
		assert_int_equal(
			buf_add(&line, i % 77 == 76 ? BYTES_LIT("A\\n") : BYTES_LIT("A"), &err), 0);
	assert_int_equal(buf_add(&line, BYTES_LIT("\"}"), &err), 0);
	assert_int_equal(run_event_read(buf_view(&line), &e, &err), 0);
	assert_int_equal(run_files_add(&d->f, &e, &err), 1);
	assert_int_equal(fstatat(d->f.dir, "plot.v2-1.png", &st, 0), 0);
	assert_int_equal(st.st_size, CHARACTERS / 4 * 3);
}

static void names_come_from_what_was_run(void **state)
{
	static const struct {
		const char *name, *source, *stem;
	} rows[] = { { "file", "a/b/plot.py", "plot" }, { "no ending", "plot", "plot" },
		     { "hidden", ".py", ".py" },        { "standard input", "-", "result" },
		     { "nothing", NULL, "result" },     { "a folder", "a/", "result" } };

	(void)state;
	FOR_ROWS(row, rows) {
		struct run_files f = { 0 };
		struct err err = { 0 };

		assert_int_equal(run_files_open(&f, NULL, row->source, &err), 0);
		assert_string_equal(f.stem, row->stem);
		run_files_close(&f);
	}
}

#define WITH_FOLDER(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_the_same_however_they_come),
		cmocka_unit_test(a_line_without_end_is_refused_at_its_limit),
		cmocka_unit_test(a_large_line_leaves_no_memory_behind),
		cmocka_unit_test(events_have_what_is_of_the_right_kind),
		cmocka_unit_test(what_is_no_event_is_refused),
		cmocka_unit_test(a_terminal_is_given_no_commands),
		WITH_FOLDER(a_result_is_written_as_what_it_is),
		WITH_FOLDER(what_is_there_is_not_overwritten),
		WITH_FOLDER(what_is_not_whole_does_not_stay),
		WITH_FOLDER(files_of_one_execution_are_counted),
		WITH_FOLDER(a_large_picture_is_whole),
		cmocka_unit_test(names_come_from_what_was_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
