/* test_node_row_file.c - what lies beside a paused sandbox and a snapshot, and is a journal again.
 */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "net/timer.h"
#include "node/journal/columns.h"
#include "node/journal/journal_db.h"
#include "node/journal/rebuild.h"
#include "node/journal/row_file.h"
#include "node/journal/snapshots_db.h"

enum { GUARD_MS = 100000 };

static struct scene {
	struct loop *loop;
	struct timer guard;
	struct journal *journal;
	char base[64], path[96];
	int sandboxes, snapshots;
	size_t n_done;
	struct err why;
} s;

static void on_guard(struct timer *t)
{
	(void)t;
	fail_msg("nothing more happened in %d ms", GUARD_MS);
}

static void on_done(struct journal_write *w, const struct err *err)
{
	(void)w;
	s.why = err ? *err : (struct err){ 0 };
	s.n_done++;
}

static int open_root(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", s.base, name);
	assert_int_equal(mkdir(path, 0700), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int set_up(void **state)
{
	struct err err;

	(void)state;
	s = (struct scene){ .base = "/tmp/hotcell-row-XXXXXX" };
	assert_non_null(mkdtemp(s.base));
	snprintf(s.path, sizeof(s.path), "%s/journal.db", s.base);
	s.sandboxes = open_root("sandboxes");
	s.snapshots = open_root("snapshots");
	assert_int_equal(loop_open(&s.loop, &err), 0);
	timer_init(&s.guard, s.loop, on_guard);
	timer_start(&s.guard, GUARD_MS);
	if (journal_open(s.loop, s.path, &s.journal, &err) < 0 ||
	    journal_describe(s.journal, s.sandboxes, s.snapshots, &err) < 0)
		fail_msg("%s", err.msg);
	return 0;
}

static int tear_down(void **state)
{
	AUTO(auto_close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	(void)state;
	timer_stop(&s.guard);
	journal_close(TAKE(s.journal));
	loop_free(s.loop);
	close(s.sandboxes);
	close(s.snapshots);
	assert_int_equal(folder_remove(tmp, s.base + strlen("/tmp/"), &err), 0);
	return 0;
}

/* --- rows --------------------------------------------------------------------------------- */

/* Every member of `of` has a value of its own: one that is forgotten shows. */
static void fill(char *row, const struct row_kind *of)
{
	for (size_t i = 0; i < of->n; i++) {
		const struct column *c = &of->columns[i];
		uint64_t number = 0x0102030405060700u + i;

		if (c->kind == COL_TEXT)
			snprintf(row + c->at, c->size, "value-%zu", i);
		else if (c->kind != COL_LONG)
			memcpy(row + c->at, &number, c->size);
	}
}

static struct journal_row some_row(const char *id, enum journal_state state)
{
	struct journal_row r = { 0 };

	fill((char *)&r, &sandbox_rows);
	memset(r.sandbox.id, 0, sizeof(r.sandbox.id));
	snprintf(r.sandbox.id, sizeof(r.sandbox.id), "%s", id);
	r.sandbox.reason = NODE_KILLED;
	r.state = state;
	return r;
}

static struct journal_snapshot some_snapshot(const char *id)
{
	struct journal_snapshot r = { 0 };

	fill((char *)&r, &snapshot_rows);
	memset(r.id, 0, sizeof(r.id));
	snprintf(r.id, sizeof(r.id), "%s", id);
	r.hidden = 0;
	r.kind = JOURNAL_STEP;
	return r;
}

static void wait_done(int rc, const struct err *err)
{
	size_t n = s.n_done;

	if (rc < 0)
		fail_msg("%s", err->msg);
	while (s.n_done == n)
		assert_true(loop_turn(s.loop));
}

static void note(struct journal_row *r, bool durable)
{
	struct journal_write w = { 0 };
	struct err err = { 0 };

	wait_done(journal_put(s.journal, &w, r, durable, on_done, &err), &err);
}

static void note_snapshot(const struct journal_snapshot *r)
{
	struct journal_write w = { 0 };
	struct err err = { 0 };

	wait_done(journal_put_snapshot(s.journal, &w, r, on_done, &err), &err);
}

static bool is_there(const char *name)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", s.base, name);
	return access(path, F_OK) == 0;
}

static int read_row(int root, const char *id, struct journal_row *ret, struct err *err)
{
	AUTO(auto_close) int folder = folder_open(root, id, O_RDONLY | O_DIRECTORY, 0, err);
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX + 1);

	assert_true(folder >= 0);
	return row_file_read(folder, &text, err) < 0 ? -1 : row_get(buf_view(&text), ret, err);
}

/* --- the tests ---------------------------------------------------------------------------- */

static void a_row_is_read_as_it_was_written(void **state)
{
	char text[] = "{\"metadata\":{}}\n\nQEMU 10\ncpu", known[] = "[\"a\", \"1.2.3.4\"]";
	struct journal_row r = some_row("ia1", JOURNAL_PAUSED), got;
	struct journal_snapshot p = some_snapshot("abc"), got_p;
	AUTO(buf_done) struct buf out = BUF_SECRET(ROW_FILE_MAX);
	struct err err = { 0 };

	(void)state;
	r.text = text;
	r.known = known;
	assert_int_equal(row_put(&r, &out, &err), 0);
	assert_int_equal(row_get_snapshot(buf_view(&out), &got_p, &err), -1);
	if (row_get(buf_view(&out), &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_memory_equal(&got, &r, offsetof(struct journal_row, text));
	assert_string_equal(got.text, text);
	assert_string_equal(got.known, known);
	row_done(&got);
	buf_clear(&out);
	assert_int_equal(row_put_snapshot(&p, &out, &err), 0);
	if (row_get_snapshot(buf_view(&out), &got_p, &err) < 0)
		fail_msg("%s", err.msg);
	assert_memory_equal(&got_p, &p, offsetof(struct journal_snapshot, known));
	assert_null(got_p.known);
	row_done_snapshot(&got_p);
}

static void no_byte_of_it_may_change(void **state)
{
	struct journal_row r = some_row("ia1", JOURNAL_PAUSED), got;
	AUTO(buf_done) struct buf out = BUF_SECRET(ROW_FILE_MAX);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(row_put(&r, &out, &err), 0);
	for (size_t i = 0; i < out.len; i++) {
		out.ptr[i] ^= 0x10;
		assert_int_equal(row_get(buf_view(&out), &got, &err), -1);
		out.ptr[i] ^= 0x10;
		assert_int_equal(row_get(bytes_head(buf_view(&out), i), &got, &err), -1);
	}
	assert_int_equal(row_get(buf_view(&out), &got, &err), 0);
	row_done(&got);
}

static void what_is_paused_is_described_until_it_wakes(void **state)
{
	struct journal_row r = some_row("ia1", JOURNAL_RUNNING), got;
	char text[] = "{\"a\":1}", other[] = "{\"a\":2}";
	struct err err = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(mkdirat(s.sandboxes, "ia1", 0700), 0);
	note(&r, false);
	assert_false(is_there("sandboxes/ia1/row"));
	r.state = JOURNAL_PAUSED;
	r.text = text;
	note(&r, true);
	assert_int_equal(s.why.code, ERR_NONE);
	assert_int_equal(fstatat(s.sandboxes, "ia1/row", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	r.text = other; /* its secrets change while it is paused */
	note(&r, true);
	if (read_row(s.sandboxes, "ia1", &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(got.text, other);
	assert_memory_equal(&got, &r, offsetof(struct journal_row, text));
	row_done(&got);
	r.state = JOURNAL_WAKING;
	note(&r, true);
	assert_false(is_there("sandboxes/ia1/row"));
	assert_false(is_there("sandboxes/ia1/deleted"));
	assert_false(is_there("sandboxes/ia1/row.new"));
}

static void what_somebody_wants_gone_is_marked(void **state)
{
	struct journal_row r = some_row("ia1", JOURNAL_PAUSED);

	(void)state;
	assert_int_equal(mkdirat(s.sandboxes, "ia1", 0700), 0);
	note(&r, true);
	r.state = JOURNAL_KILLING;
	r.sandbox.reason = NODE_LOST; /* nobody's wish: the folder may know better */
	note(&r, true);
	r.sandbox.reason = NODE_LIFETIME;
	note(&r, true);
	assert_true(is_there("sandboxes/ia1/row"));
	assert_false(is_there("sandboxes/ia1/deleted"));
	r.sandbox.reason = NODE_KILLED;
	note(&r, true);
	assert_false(is_there("sandboxes/ia1/row"));
	assert_true(is_there("sandboxes/ia1/deleted"));
	r.state = JOURNAL_PAUSED; /* it was not to be: the row could not be written */
	note(&r, true);
	assert_true(is_there("sandboxes/ia1/row"));
	assert_false(is_there("sandboxes/ia1/deleted"));
}

static void without_a_folder_the_row_is_all_there_is(void **state)
{
	struct journal_row r = some_row("ia1", JOURNAL_PAUSED);
	struct journal_snapshot p = some_snapshot("abc");

	(void)state;
	note(&r, true);
	assert_int_equal(s.why.code, ERR_NONE);
	note_snapshot(&p);
	assert_int_equal(s.why.code, ERR_NONE);
	r.state = JOURNAL_KILLING;
	note(&r, true);
	assert_int_equal(s.why.code, ERR_NONE);
}

static void what_cannot_be_described_is_not_paused(void **state)
{
	struct journal_row r = some_row("ia1", JOURNAL_PAUSED);

	(void)state;
	assert_int_equal(mkdirat(s.sandboxes, "ia1", 0700), 0);
	assert_int_equal(mkdirat(s.sandboxes, "ia1/row.new", 0700), 0);
	note(&r, true);
	assert_int_not_equal(s.why.code, ERR_NONE);
	assert_false(is_there("sandboxes/ia1/row"));
}

static void a_snapshot_is_described_until_it_is_deleted(void **state)
{
	struct journal_snapshot p = some_snapshot("abc");
	struct journal_write w = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(mkdirat(s.snapshots, "abc", 0700), 0);
	note_snapshot(&p);
	assert_true(is_there("snapshots/abc/row"));
	wait_done(journal_remove_snapshot(s.journal, &w, "abc", on_done, &err), &err);
	assert_false(is_there("snapshots/abc/row"));
	assert_true(is_there("snapshots/abc/deleted"));
}

/* --- a journal made again ----------------------------------------------------------------- */

struct said {
	struct rebuild_user user;
	char last[320];
};

static void on_said(struct rebuild_user *u, const char *kind, const char *id, const char *why)
{
	struct said *said = CONTAINER_OF(u, struct said, user);

	if (why)
		snprintf(said->last, sizeof(said->last), "%s %s: %s", kind, id, why);
}

static void put_file(int root, const char *name, const char *text)
{
	int fd = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void make_paused(const char *id)
{
	struct journal_row r = some_row(id, JOURNAL_PAUSED);
	char path[96];

	assert_int_equal(mkdirat(s.sandboxes, id, 0700), 0);
	for (const char *const *f = (const char *const[]){ "disk", "pages", "state", NULL }; *f;
	     f++) {
		snprintf(path, sizeof(path), "%s/%s", id, *f);
		put_file(s.sandboxes, path, "data");
	}
	note(&r, true);
}

static void make_snapshot(const char *id)
{
	struct journal_snapshot p = some_snapshot(id);
	char path[96];

	assert_int_equal(mkdirat(s.snapshots, id, 0700), 0);
	snprintf(path, sizeof(path), "%s/manifest", id);
	put_file(s.snapshots, path, "manifest");
	note_snapshot(&p);
}

static void lose_journal(void)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	char path[128];
	struct err err;

	journal_close(TAKE(s.journal));
	for (size_t i = 0; i < COUNT(ends); i++) {
		snprintf(path, sizeof(path), "%s%s", s.path, ends[i]);
		(void)unlink(path);
	}
	if (journal_open(s.loop, s.path, &s.journal, &err) < 0 ||
	    journal_describe(s.journal, s.sandboxes, s.snapshots, &err) < 0)
		fail_msg("%s", err.msg);
}

static struct rebuilt rebuild(struct said *said)
{
	struct rebuilt got;
	struct err err = { 0 };

	*said = (struct said){ .user = { s.sandboxes, s.snapshots, -1, -1, on_said } };
	if (journal_rebuild(s.journal, &said->user, &got, &err) < 0)
		fail_msg("%s", err.msg);
	return got;
}

static int same_row(const struct journal_row *row, void *context, struct err *err)
{
	const struct journal_row want = some_row(row->sandbox.id, JOURNAL_PAUSED);

	(void)err;
	assert_memory_equal(row, &want, offsetof(struct journal_row, text));
	++*(size_t *)context;
	return 0;
}

static int same_snapshot(const struct journal_snapshot *row, void *context, struct err *err)
{
	const struct journal_snapshot want = some_snapshot(row->id);

	(void)err;
	assert_memory_equal(row, &want, offsetof(struct journal_snapshot, known));
	++*(size_t *)context;
	return 0;
}

static void on_odd(const struct journal_odd *row, void *context)
{
	(void)context;
	fail_msg("%s: %s", row->id, row->why);
}

static void a_lost_journal_is_made_again(void **state)
{
	struct said said;
	struct rebuilt got;
	size_t n = 0;
	struct err err;

	(void)state;
	make_paused("ia1");
	make_paused("ia2");
	make_snapshot("abc");
	lose_journal();
	got = rebuild(&said);
	assert_int_equal(got.sandboxes, 2);
	assert_int_equal(got.snapshots, 1);
	assert_int_equal(got.unreadable + got.undescribed + got.deleted, 0);
	assert_int_equal(journal_each(s.journal, same_row, on_odd, &n, &err), 0);
	assert_int_equal(n, 2);
	assert_int_equal(journal_each_snapshot(s.journal, same_snapshot, on_odd, &n, &err), 0);
	assert_int_equal(n, 3);
	/* one that has rows is left alone */
	got = rebuild(&said);
	assert_int_equal(got.sandboxes + got.snapshots, 0);
}

static void wrong_name(void)
{
	assert_int_equal(renameat(s.sandboxes, "ia1", s.sandboxes, "ia9"), 0);
}

static void cut_off(void)
{
	int fd = openat(s.sandboxes, "ia1/row", O_WRONLY | O_CLOEXEC);

	assert_int_equal(ftruncate(fd, 100), 0);
	close(fd);
}

static void no_disk(void)
{
	assert_int_equal(unlinkat(s.sandboxes, "ia1/disk", 0), 0);
}

static void no_pages(void)
{
	assert_int_equal(unlinkat(s.sandboxes, "ia1/pages", 0), 0);
}

static void a_folder(void)
{
	assert_int_equal(unlinkat(s.sandboxes, "ia1/row", 0), 0);
	assert_int_equal(mkdirat(s.sandboxes, "ia1/row", 0700), 0);
}

static void what_cannot_be_read_is_told_and_the_rest_is_back(void **state)
{
	static const struct {
		const char *name; /* of what is said */
		void (*damage)(void);
	} rows[] = {
		{ "sandbox ia9: its description is of ia1", wrong_name },
		{ "sandbox ia1: its description is damaged", cut_off },
		{ "sandbox ia1: its disk is missing", no_disk },
		{ "sandbox ia1: its saved memory is missing", no_pages },
		{ "sandbox ia1: its description is damaged", a_folder },
	};

	FOR_ROWS(row, rows) {
		struct rebuilt got;
		struct said said;

		set_up(state);
		make_paused("ia1");
		make_paused("ia2");
		lose_journal();
		row->damage();
		got = rebuild(&said);
		assert_int_equal(got.sandboxes, 1);
		assert_int_equal(got.unreadable, 1);
		assert_non_null(strstr(said.last, row->name));
		tear_down(state);
	}
}

static void what_was_deleted_or_ran_is_not_brought_back(void **state)
{
	struct journal_row r = some_row("ia1", JOURNAL_KILLING);
	struct rebuilt got;
	struct said said;

	(void)state;
	make_paused("ia1");
	note(&r, true); /* and its node died before anything was removed */
	make_paused("ia2");
	r = some_row("ia2", JOURNAL_WAKING);
	note(&r, true);
	lose_journal();
	assert_int_equal(mkdirat(s.snapshots, ".new-abc", 0700), 0);
	got = rebuild(&said);
	assert_int_equal(got.sandboxes + got.snapshots, 0);
	assert_int_equal(got.deleted, 1);
	assert_int_equal(got.undescribed, 1);
}

/* SQLite removes the log of a file that is new. */
static void a_log_without_its_journal_is_not_touched(void **state)
{
	char wal[128];
	struct err err = { 0 };

	(void)state;
	journal_close(TAKE(s.journal));
	snprintf(wal, sizeof(wal), "%s-wal", s.path);
	assert_int_equal(unlink(s.path), 0);
	put_file(s.sandboxes, "../journal.db-wal", "frames");
	assert_int_equal(rebuild_check_wal(s.path, &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
	assert_non_null(strstr(err.msg, "--rebuild"));
	assert_int_equal(unlink(wal), 0);
	assert_int_equal(rebuild_check_wal(s.path, &err), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_is_read_as_it_was_written),
		cmocka_unit_test(no_byte_of_it_may_change),
		T(what_is_paused_is_described_until_it_wakes),
		T(what_somebody_wants_gone_is_marked),
		T(without_a_folder_the_row_is_all_there_is),
		T(what_cannot_be_described_is_not_paused),
		T(a_snapshot_is_described_until_it_is_deleted),
		T(a_lost_journal_is_made_again),
		cmocka_unit_test(what_cannot_be_read_is_told_and_the_rest_is_back),
		T(what_was_deleted_or_ran_is_not_brought_back),
		T(a_log_without_its_journal_is_not_touched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
