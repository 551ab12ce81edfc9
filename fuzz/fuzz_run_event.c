/* fuzz_run_event.c - promises about what `hotcell run` makes of what a guest says: lines are the
 * same however they are cut; events borrow from their line; a file is written whole or not at all,
 * with a name that is ours; a terminal is given nothing that it obeys.
 *
 * The first byte says how the rest, lines, is cut.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/read_all.h"
#include "cli/run_event.h"
#include "cli/run_files.h"
#include "cli/run_out.h"
#include "fuzz/must.h"
#include "wire/base64.h"
#include "wire/json_skim.h"

static void whole(struct bytes text, struct buf *out)
{
	struct err err = { 0 };
	uint8_t piece[256];
	size_t n;

	while ((n = json_skim_take(&text, piece, sizeof(piece))) > 0)
		MUST(buf_add(out, (struct bytes){ piece, n }, &err) == 0);
}

static void must_be_clean(struct bytes text)
{
	AUTO(buf_done) struct buf all = BUF_MAX(text.len + 8);

	whole(text, &all);
	run_out_clean(all.ptr, all.len);
	for (size_t i = 0; i < all.len; i++) {
		uint8_t c = all.ptr[i];

		MUST(c >= ' ' || c == '\n' || c == '\t' || c == '\r');
		MUST(c != 127);
		MUST(c != 0xc2 || i + 1 == all.len || all.ptr[i + 1] >= 0xa0);
	}
}

/* --- files ---------------------------------------------------------------------------------- */

struct made {
	struct run_files files;
	size_t n;
	bool png;
};

static void on_file(struct run_files *f, const char *name)
{
	struct made *m = CONTAINER_OF(f, struct made, files);

	MUST(strncmp(name, "fuzzed-", 7) == 0 && !strchr(name, '/'));
	m->png = m->png || strcmp(name, "fuzzed-1.png") == 0;
	m->n++;
}

static int count_one(int dir, const char *name, void *context, struct err *err)
{
	size_t n;

	(void)dir;
	(void)name;
	(void)err;
	memcpy(&n, context, sizeof(n));
	n++;
	memcpy(context, &n, sizeof(n));
	return 0;
}

/* All at once, the picture is what it is in pieces. */
static void must_be_picture(int dir, struct bytes raw)
{
	AUTO(buf_done) struct buf text = BUF_MAX(raw.len), tight = BUF_MAX(raw.len);
	AUTO(buf_done) struct buf want = BUF_MAX(raw.len), got = BUF_MAX(raw.len + 1);
	AUTO(auto_close) int fd = openat(dir, "fuzzed-1.png", O_RDONLY | O_CLOEXEC);
	struct err err = { 0 };

	whole(raw, &text);
	for (size_t i = 0; i < text.len; i++)
		if (!strchr(" \t\r\n", text.ptr[i] ? text.ptr[i] : 'x'))
			MUST(buf_add(&tight, (struct bytes){ &text.ptr[i], 1 }, &err) == 0);
	MUST(base64_decode(buf_view(&tight), &want, &err) == 0);
	MUST(read_all(fd, &got, &err) == 0);
	MUST(bytes_eq(buf_view(&want), buf_view(&got)));
}

static void check_files(const struct run_event *e)
{
	char path[] = "/tmp/fuzz-run-XXXXXX";
	struct made m = { .files = { .on_file = on_file } };
	AUTO(auto_close) int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err = { 0 };
	size_t n = 0;

	MUST(mkdtemp(path));
	MUST(run_files_open(&m.files, path, "fuzzed.py", &err) == 0);
	if (run_files_add(&m.files, e, &err) < 0)
		must_say_why(&err);
	MUST(folder_each(m.files.dir, count_one, &n, &err) == 0 && n == m.n);
	if (m.png)
		must_be_picture(m.files.dir, e->member[RUN_PNG]);
	run_files_close(&m.files);
	MUST(folder_remove(tmp, strrchr(path, '/') + 1, &err) == 0);
}

/* --- events and lines ----------------------------------------------------------------------- */

static bool has_file(const struct run_event *e)
{
	return run_event_has(e, RUN_PNG) || run_event_has(e, RUN_JPEG) ||
	       run_event_has(e, RUN_PDF) || run_event_has(e, RUN_SVG) ||
	       run_event_has(e, RUN_HTML) || run_event_has(e, RUN_CHART);
}

static void check_event(struct bytes line)
{
	struct err err = { 0 };
	struct run_event e;

	if (run_event_read(line, &e, &err) < 0) {
		must_say_why(&err);
		return;
	}
	for (size_t i = 0; i < RUN_MEMBERS; i++) {
		MUST(inside(e.member[i], line));
		if (i < RUN_STRINGS)
			must_be_clean(e.member[i]);
	}
	if (has_file(&e))
		check_files(&e);
}

static void must_be_lines(struct bytes in, size_t step)
{
	struct run_lines l = { 0 };
	struct err err = { 0 };
	struct bytes rest = in, want, got;

	while (in.len > 0) {
		struct bytes piece = bytes_head(in, step);
		int rc;

		in = bytes_tail(in, step);
		while ((rc = run_lines_next(&l, &piece, &got, &err)) == 1) {
			MUST(bytes_cut(&rest, '\n', &want));
			MUST(bytes_eq(got, want));
		}
		MUST(rc == 0);
	}
	MUST(!bytes_cut(&rest, '\n', &want));
	MUST(run_lines_rest(&l) == (rest.len > 0));
	run_lines_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size }, line;

	if (size == 0)
		return 0;
	in = bytes_tail(in, 1);
	must_be_lines(in, (size_t)data[0] + 1);
	while (bytes_next(&in, '\n', &line))
		check_event(line);
	return 0;
}
