/* test_node_lost.c - folders in no row: set aside for a week or a day, unless they were to go. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/folder.h"
#include "node/node.h"
#include "node/journal/row_file.h"
#include "node/recovery/sweep_rows.h"

#define NOON 1794830400000000000ull /* 2026-11-16T12:00:00Z */

static struct world {
	char base[64];
	int sandboxes, snapshots, lost;
} w;

static int open_root(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", w.base, name);
	assert_int_equal(mkdir(path, 0700), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int set_up(void **state)
{
	struct err err;

	(void)state;
	w = (struct world){ .base = "/tmp/hotcell-lost-XXXXXX" };
	assert_non_null(mkdtemp(w.base));
	w.sandboxes = open_root("sandboxes");
	w.snapshots = open_root("snapshots");
	w.lost = lost_open(w.sandboxes, &err);
	assert_true(w.lost >= 0);
	return 0;
}

static int tear_down(void **state)
{
	AUTO(auto_close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	(void)state;
	close(w.sandboxes);
	close(w.snapshots);
	close(w.lost);
	assert_int_equal(folder_remove(tmp, w.base + strlen("/tmp/"), &err), 0);
	return 0;
}

static void put(int root, const char *folder, const char *name, const char *text)
{
	char path[128];
	int fd;

	(void)mkdirat(root, folder, 0700);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void describe(int root, const char *id)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX);
	struct journal_row row = { .state = JOURNAL_PAUSED };
	struct err err;

	snprintf(row.sandbox.id, sizeof(row.sandbox.id), "%s", id);
	assert_int_equal(row_put(&row, &text, &err), 0);
	assert_int_equal(row_file_write(root, id, buf_view(&text), &err), 0);
}

static bool is_there(int root, const char *name)
{
	return faccessat(root, name, F_OK, 0) == 0;
}

/* "known..." has a row, others a tombstone. */
static bool has_row(struct sweep_facts *f, enum lost_kind kind, const char *id)
{
	(void)f, (void)kind;
	return strncmp(id, "known", 5) == 0;
}

static enum node_reason why_ended(struct sweep_facts *f, enum lost_kind kind, const char *id)
{
	(void)f, (void)kind;
	return !strncmp(id, "ended", 5)   ? NODE_KILLED
	       : !strncmp(id, "died", 4)  ? NODE_VMM_CRASH
	       : !strncmp(id, "vague", 5) ? NODE_LOST
					  : NODE_ALIVE;
}

static struct swept sweep(uint64_t now_ns)
{
	struct sweep_facts f = { has_row, why_ended };
	struct orphans s = { 0 };
	struct swept ret;
	struct err err;

	assert_int_equal(orphans_find(&s, w.sandboxes, LOST_SANDBOX, &f, &err), 0);
	assert_int_equal(orphans_find(&s, w.snapshots, LOST_SNAPSHOT, &f, &err), 0);
	ret = orphans_sweep(&s, w.sandboxes, w.snapshots, w.lost, now_ns);
	orphans_done(&s);
	return ret;
}

static void names_are_read_as_they_are_made(void **state)
{
	static const char *const strange[] = {
		"",
		"lost+found",
		"20261116t120000z",
		"20261116t120000z-sandbox-",
		"20261116t120000z-thing-i1",
		"20261116T120000Z-sandbox-i1",
		"20261316t120000z-sandbox-i1",
		"20261116t120000z-sandbox-../i1",
		"2026111",
	};
	char name[LOST_NAME_SIZE], longest[NODE_ID_MAX + 1];
	struct lost_entry e;

	(void)state;
	lost_name(LOST_SNAPSHOT, "abc-d", NOON, name);
	assert_string_equal(name, "20261116t120000z-snapshot-abc-d");
	assert_true(lost_parse(name, &e));
	assert_string_equal(e.id, "abc-d");
	assert_int_equal(e.kind, LOST_SNAPSHOT);
	assert_int_equal(e.since_ns, NOON);
	memset(longest, 'x', NODE_ID_MAX);
	longest[NODE_ID_MAX] = '\0';
	lost_name(LOST_SNAPSHOT, longest, NOON, name);
	assert_true(lost_parse(name, &e));
	assert_string_equal(e.id, longest);
	for (size_t i = 0; i < COUNT(strange); i++)
		if (lost_parse(strange[i], &e))
			fail_msg("%s", strange[i]);
}

static void what_was_saved_or_ran_is_set_aside(void **state)
{
	struct lost_list all;
	struct swept got;
	struct err err;

	(void)state;
	put(w.sandboxes, "known1", "disk", "disk");
	put(w.sandboxes, "paused1", "disk", "disk");
	describe(w.sandboxes, "paused1");
	put(w.sandboxes, "damaged1", "disk", "disk");
	put(w.sandboxes, "damaged1", "row", "row");
	put(w.sandboxes, "bare1", "pages", "pages");
	describe(w.sandboxes, "bare1");             /* its disk is gone */
	put(w.sandboxes, "ended1", "disk", "disk"); /* killed, and put back from a backup */
	describe(w.sandboxes, "ended1");
	put(w.sandboxes, "ran1", "disk", "disk");
	put(w.sandboxes, "vague1", "disk", "disk");
	put(w.sandboxes, "died2", "row", "row"); /* by a journal of before: it was paused since */
	put(w.snapshots, "snap1", "memory", "memory");
	got = sweep(NOON);
	assert_int_equal(got.moved, 8);
	assert_int_equal(got.removed + got.left, 0);
	assert_true(is_there(w.sandboxes, "known1/disk"));
	assert_false(is_there(w.sandboxes, "paused1"));
	assert_true(is_there(w.lost, "20261116t120000z-sandbox-paused1/disk"));
	assert_true(is_there(w.lost, "20261116t120000z-sandbox-ran1/disk"));
	assert_true(is_there(w.lost, "20261116t120000z-snapshot-snap1/memory"));
	assert_int_equal(lost_list(w.lost, &all, &err), 0);
	assert_int_equal(all.n, 8);
	assert_true(all.bytes > 0);
	assert_true(lost_find(&all, "paused1")->described);
	assert_true(lost_find(&all, "ended1")->described);
	assert_false(lost_find(&all, "ran1")->described);
	assert_false(lost_find(&all, "damaged1")->described);
	assert_false(lost_find(&all, "bare1")->described);
	assert_null(lost_find(&all, "known1"));
	assert_int_equal(lost_move_back(w.lost, lost_find(&all, "paused1"), w.sandboxes, &err), 0);
	assert_true(is_there(w.sandboxes, "paused1/disk"));
	put(w.sandboxes, "ran1", "disk", "another");
	assert_int_equal(lost_move_back(w.lost, lost_find(&all, "ran1"), w.sandboxes, &err), -1);
	assert_int_equal(err.code, ERR_EXISTS);
	assert_true(is_there(w.lost, "20261116t120000z-sandbox-ran1/disk"));
	lost_list_done(&all);
}

static void what_was_to_go_goes(void **state)
{
	struct swept got;

	(void)state;
	put(w.sandboxes, "ended1", "disk",
	    "disk"); /* it has a tombstone: its node died just then */
	put(w.sandboxes, "died1", "disk", "disk");
	put(w.sandboxes, "killed1", "disk", "disk");
	put(w.sandboxes, "killed1", "deleted", "");
	put(w.sandboxes, "killed1", "row", "row"); /* between the mark and its end */
	put(w.snapshots, "deleted1", "memory", "memory");
	put(w.snapshots, "deleted1", "deleted", "");
	put(w.snapshots, ".new-half1", "memory", "memory");
	assert_int_equal(mkdirat(w.sandboxes, "empty1", 0700), 0); /* of a create */
	put(w.sandboxes, "begun1", "disk", "");
	got = sweep(NOON);
	assert_int_equal(got.removed, 7);
	assert_int_equal(got.moved + got.left, 0);
	assert_false(is_there(w.sandboxes, "killed1") || is_there(w.snapshots, ".new-half1"));
}

static void what_cannot_be_moved_is_left(void **state)
{
	struct swept got;

	(void)state;
	put(w.sandboxes, "lost+found", "x", "x"); /* none of ours */
	put(w.sandboxes, "twice1", "disk", "new");
	put(w.lost, "20261116t120000z-sandbox-twice1", "disk", "old");
	put(w.sandboxes, "ran1", "disk", "disk");
	got = sweep(NOON);
	assert_int_equal(got.moved, 1);
	assert_int_equal(got.left, 1);
	assert_true(is_there(w.sandboxes, "lost+found/x"));
	assert_true(is_there(w.sandboxes, "twice1/disk"));
}

static void a_week_is_a_week_and_a_day_a_day(void **state)
{
	static const struct {
		const char *name;
		uint64_t s;
	} rows[] = {
		{ "20261116t120000z-sandbox-i1", 7 * 24 * 3600 },
		{ "20261116t120000z-snapshot-i1", 7 * 24 * 3600 },
		{ "20261116t120000z-disk-i1", 24 * 3600 },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		const uint64_t time = row->s * NSEC_PER_SEC;
		struct lost_entry e;

		assert_true(lost_parse(row->name, &e));
		assert_int_equal(lost_until_ns(&e), NOON + time);
		assert_false(lost_is_old(&e, NOON));
		assert_false(lost_is_old(&e, NOON - time));
		assert_false(lost_is_old(&e, NOON + time - 1));
		assert_true(lost_is_old(&e, NOON + time));
	}
}

/* It was made of a snapshot, which is kept as long as it may come back. */
static void what_is_lost_says_what_it_was_made_of(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX);
	struct journal_row row = { .state = JOURNAL_PAUSED,
				   .sandbox = { .id = "i1", .template_id = "snap1" },
				   .base_id = "base" };
	struct lost_list all;
	struct err err;

	(void)state;
	put(w.sandboxes, "i1", "disk", "disk");
	put(w.lost, "20261116t120000z-disk-i2", "row", "row"); /* damaged: nobody knows */
	assert_int_equal(row_put(&row, &text, &err), 0);
	assert_int_equal(row_file_write(w.sandboxes, "i1", buf_view(&text), &err), 0);
	assert_int_equal(lost_move(w.sandboxes, "i1", LOST_DISK, w.lost, NOON, &err), 0);
	assert_int_equal(lost_list(w.lost, &all, &err), 0);
	assert_true(lost_holds(&all, "snap1"));
	assert_false(lost_holds(&all, "snap2") || lost_holds(&all, "base"));
	lost_list_done(&all);
}

/* It cannot be told what it was made of: the snapshot stays. */
static void what_cannot_be_looked_into_may_be_made_of_any(void **state)
{
	struct rlimit before, few;
	struct lost_list all;
	struct err err;
	int next = dup(w.lost);

	(void)state;
	close(next);
	put(w.lost, "20261116t120000z-disk-i1", "disk", "disk");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){ (rlim_t)next + 1, before.rlim_max }; /* lost/, and no more */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(lost_list(w.lost, &all, &err), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(all.n, 1);
	assert_true(lost_holds(&all, "snap1"));
	lost_list_done(&all);
	assert_int_equal(lost_list(w.lost, &all, &err), 0);
	assert_false(lost_holds(&all, "snap1"));
	lost_list_done(&all);
}

static void what_is_dropped_is_not_brought_back(void **state)
{
	struct lost_list all;
	struct err err;

	(void)state;
	put(w.lost, "20261116t120000z-disk-i1", "disk", "disk");
	put(w.lost, "20261116t120000z-disk-i2", "disk", "disk");
	put(w.lost, ".gone-20261116t120000z-disk-i3", "disk", "disk"); /* a node died */
	assert_int_equal(lost_list(w.lost, &all, &err), 0);
	assert_int_equal(all.n, 2);
	assert_int_equal(lost_drop(w.lost, &all.all[0], &err), 0);
	assert_int_equal(lost_move_back(w.lost, &all.all[0], w.sandboxes, &err), -1);
	assert_int_equal(lost_move_back(w.lost, &all.all[1], w.sandboxes, &err), 0);
	assert_int_equal(lost_drop(w.lost, &all.all[1], &err), -1); /* somebody was quicker */
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_true(is_there(w.sandboxes, "i2/disk"));
	lost_tidy(w.lost);
	assert_false(is_there(w.lost, ".gone-20261116t120000z-disk-i3"));
	lost_list_done(&all);
}

static void rows_without_files_are_counted(void **state)
{
	struct saved_row all[] = {
		{ .id = "gone1" },
		{ .id = "whole1" },
		{ .id = "old1" },
		{ .id = "gone2", .kind = LOST_SNAPSHOT },
	};
	struct rows_look r = { all, COUNT(all) };

	(void)state;
	put(w.sandboxes, "whole1", "row", "row");
	put(w.sandboxes, "old1", "disk", "disk");
	rows_look(&r, w.sandboxes, w.snapshots);
	assert_int_equal(rows_look_missing(&r), 2);
	assert_true(all[0].missing && all[3].missing && !all[0].undescribed);
	assert_true(all[2].undescribed && !all[1].undescribed && !all[2].missing);
}

static void set_aside(const char *id, uint32_t generation, uint64_t now_ns)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX);
	struct journal_row row = { .state = JOURNAL_PAUSED,
				   .pages_crc = 7,
				   .state_crc = 8,
				   .sandbox = { .generation = generation } };
	struct err err;

	snprintf(row.sandbox.id, sizeof(row.sandbox.id), "%s", id);
	put(w.sandboxes, id, "disk", "disk");
	assert_int_equal(row_put(&row, &text, &err), 0);
	assert_int_equal(row_file_write(w.sandboxes, id, buf_view(&text), &err), 0);
	assert_int_equal(lost_move(w.sandboxes, id, LOST_SANDBOX, w.lost, now_ns, &err), 0);
}

/* Of what an older journal had no row of. */
static void what_a_row_misses_comes_back(void **state)
{
	const struct lost_save second = { 2, 7, 8 };
	struct saved_row all[] = {
		{ .id = "twice1", .save = second },
		{ .id = "whole1", .save = second },
		{ .id = "other1", .save = { 2, 7, 9 } },
		{ .id = "snap1", .kind = LOST_SNAPSHOT, .save = second },
		{ .id = "back1", .save = second },
	};
	struct rows_look r = { all, COUNT(all) };
	struct lost_list lost;
	struct err err;

	(void)state;
	set_aside("back1", 2, NOON);
	set_aside("twice1", 1, NOON);
	set_aside("twice1", 2, NOON + NSEC_PER_SEC);
	set_aside("whole1", 2, NOON);
	put(w.sandboxes, "whole1", "row", "row");
	set_aside("other1", 2, NOON);
	set_aside("snap1", 2, NOON); /* a sandbox of that id is another thing */
	set_aside("norow1", 2, NOON);
	assert_int_equal(lost_list(w.lost, &lost, &err), 0);
	assert_true(lost_is_save(lost_find_save(&lost, "twice1", &second), &second));
	assert_int_equal(lost_find_save(&lost, "other1", &all[2].save)->save.state_crc, 8);
	rows_look(&r, w.sandboxes, w.snapshots);
	rows_bring_back(&r, w.sandboxes, w.snapshots, w.lost, &lost);
	assert_int_equal(rows_look_missing(&r), 2);
	assert_true(is_there(w.sandboxes, "back1/disk") && is_there(w.sandboxes, "twice1/disk"));
	assert_false(is_there(w.sandboxes, "other1") || is_there(w.snapshots, "snap1"));
	assert_int_equal(lost.n, 5);
	assert_null(lost_find(&lost, "back1"));
	assert_int_equal(lost_find(&lost, "twice1")->save.number, 1);
	assert_true(is_there(w.lost, lost_find(&lost, "twice1")->name));
	lost_list_done(&lost);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_read_as_they_are_made),
		T(what_was_saved_or_ran_is_set_aside),
		T(what_was_to_go_goes),
		T(what_cannot_be_moved_is_left),
		cmocka_unit_test(a_week_is_a_week_and_a_day_a_day),
		T(what_is_lost_says_what_it_was_made_of),
		T(what_cannot_be_looked_into_may_be_made_of_any),
		T(what_is_dropped_is_not_brought_back),
		T(rows_without_files_are_counted),
		T(what_a_row_misses_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
