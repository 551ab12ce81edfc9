/* test_agent_tree.c - entries, walks, removals, watched directories: what Filesystem is made of. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/filesystem/account_names.h"
#include "agent/files/dirs.h"
#include "agent/filesystem/entry.h"
#include "agent/machine/metrics.h"
#include "agent/filesystem/tree_remove.h"
#include "agent/filesystem/tree_walk.h"
#include "agent/filesystem/watched_dirs.h"

static char root[64];

static const char *in(const char *path)
{
	static char full[USER_PATH_MAX];

	snprintf(full, sizeof(full), "%s/%s", root, path);
	return full;
}

static int remove_all(const char *path, struct err *err)
{
	static struct tree_remove r;
	int more;

	tree_remove_open(&r, path);
	do
		more = tree_remove_step(&r, err);
	while (more > 0);
	tree_remove_close(&r);
	return more;
}

static int open_place(void **state)
{
	(void)state;
	snprintf(root, sizeof(root), "/tmp/hotcell-tree-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int close_place(void **state)
{
	struct err err = { 0 };

	(void)state;
	return remove_all(root, &err);
}

static void make(const char *path)
{
	const struct account me = { .uid = getuid(), .gid = getgid() };
	int fd;

	assert_int_equal(dirs_make_parents(in(path), &me), 0);
	fd = open(in(path), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	close(fd);
}

/* --- words -------------------------------------------------------------------------------- */

static void permissions_as_go_writes_them(void **state)
{
	static const struct {
		const char *name;
		mode_t mode;
		const char *want;
	} rows[] = {
		{ "a file", S_IFREG | 0644, "-rw-r--r--" },
		{ "a directory", S_IFDIR | 0755, "drwxr-xr-x" },
		{ "a link", S_IFLNK | 0777, "Lrwxrwxrwx" },
		{ "sticky", S_IFDIR | 01777, "dtrwxrwxrwx" },
		{ "setuid", S_IFREG | 04755, "urwxr-xr-x" },
		{ "setgid", S_IFDIR | 02750, "dgrwxr-x---" },
		{ "a pipe", S_IFIFO | 0600, "prw-------" },
		{ "a socket", S_IFSOCK | 0700, "Srwx------" },
		{ "a block device", S_IFBLK | 0660, "Drw-rw----" },
		{ "a character device", S_IFCHR | 0666, "Dcrw-rw-rw-" },
		{ "everything", S_IFCHR | 07777, "Dugctrwxrwxrwx" },
		{ "nothing", S_IFREG, "----------" },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char got[ENTRY_PERMISSIONS_MAX];

		entry_permissions(row->mode, got);
		assert_string_equal(got, row->want);
	}
}

static void times_in_rfc_3339(void **state)
{
	static const struct {
		const char *name;
		struct timespec t;
		const char *want;
	} rows[] = {
		{ "the first", { 0, 0 }, "1970-01-01T00:00:00Z" },
		{ "milliseconds", { 1700000000, 120000000 }, "2023-11-14T22:13:20.120Z" },
		{ "microseconds", { 1700000000, 1000 }, "2023-11-14T22:13:20.000001Z" },
		{ "nanoseconds", { 1700000000, 1 }, "2023-11-14T22:13:20.000000001Z" },
		{ "before", { -1, 0 }, "1969-12-31T23:59:59Z" },
		{ "the last", { 253402300799, 0 }, "9999-12-31T23:59:59Z" },
		{ "too late", { 253402300800, 0 }, NULL },
		{ "too early", { -62135596801, 0 }, NULL },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char got[ENTRY_TIME_MAX];

		assert_int_equal(entry_time(&row->t, got), row->want != NULL);
		if (row->want)
			assert_string_equal(got, row->want);
	}
}

static void paths_are_tidied(void **state)
{
	static const struct {
		const char *name, *path, *want;
	} rows[] = {
		{ "the root", "/", "/" },
		{ "many slashes", "///", "/" },
		{ "dots", "/././.", "/" },
		{ "a slash at the end", "/a/b/", "/a/b" },
		{ "all", "//a/./b//c/.", "/a/b/c" },
		{ "up stays", "/a/../b", "/a/../b" },
		{ "names with dots", "/.a/..b/c.", "/.a/..b/c." },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		char path[64];

		snprintf(path, sizeof(path), "%s", row->path);
		path_tidy(path);
		assert_string_equal(path, row->want);
	}
}

static void numbers_have_names(void **state)
{
	AUTO(account_names_done) struct account_names n = { 0 };
	static const char passwd[] = "root:x:0:0::/:\nbroken\nalice:x:1000:1000::/:\n"
				     "two:x:1000:1::/:\n:x:5:5::/:\nlast:x:77:1::/:";
	FILE *f;

	(void)state;
	f = fopen(in("passwd"), "we");
	assert_non_null(f);
	fputs(passwd, f);
	fclose(f);
	account_names_load(&n, root);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(account_names_user(&n, 0), "root");
		assert_string_equal(account_names_user(&n, 1000), "alice");
		assert_string_equal(account_names_user(&n, 1008), "1008");
		assert_string_equal(account_names_user(&n, 5), "5");
		assert_string_equal(account_names_user(&n, 77), "last");
		assert_string_equal(account_names_group(&n, 0), "0");
	}
}

/* --- trees -------------------------------------------------------------------------------- */

static void a_walk_in_order(void **state)
{
	AUTO(tree_walk_close) struct tree_walk w = { 0 };
	static const char *const want[] = { "B", "a", "b", "b/x", "b/y", "b.txt", "c" };
	struct tree_entry e;
	struct err err = { 0 };

	(void)state;
	make("b/y");
	make("b/x");
	make("b.txt");
	make("B");
	make("a");
	assert_int_equal(symlink("b", in("c")), 0);
	assert_int_equal(tree_walk_open(&w, root, 9, &err), 0);
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_int_equal(tree_walk_next(&w, &e, &err), 1);
		assert_string_equal(e.path + strlen(root) + 1, want[i]);
		assert_int_equal(e.is_dir, i == 2);
	}
	assert_int_equal(tree_walk_next(&w, &e, &err), 0);
	assert_int_equal(tree_walk_next(&w, &e, &err), 0);
}

static void a_walk_that_skips_and_one_that_vanishes(void **state)
{
	AUTO(tree_walk_close) struct tree_walk w = { 0 };
	struct tree_entry e;
	struct err err = { 0 };

	(void)state;
	make("a/x");
	make("b/y");
	make("c");
	assert_int_equal(tree_walk_open(&w, root, 9, &err), 0);
	assert_int_equal(tree_walk_next(&w, &e, &err), 1); /* a */
	tree_walk_skip(&w);
	assert_int_equal(tree_walk_next(&w, &e, &err), 1); /* b */
	assert_int_equal(remove_all(in("b"), &err), 0);
	assert_int_equal(tree_walk_next(&w, &e, &err), 1);
	assert_string_equal(path_name(e.path), "c");
	tree_walk_close(&w);
	assert_int_equal(tree_walk_open(&w, in("c"), 1, &err), -1);
	assert_int_equal(err.sys, ENOTDIR);
	assert_int_equal(tree_walk_open(&w, in("no"), 1, &err), -1);
	assert_int_equal(err.sys, ENOENT);
}

static void a_removal_of_any_depth(void **state)
{
	struct err err = { 0 };
	char here[USER_PATH_MAX];

	(void)state;
	make("keep/x");
	make("t/a/b/c");
	assert_int_equal(symlink("../keep", in("t/link")), 0);
	assert_non_null(getcwd(here, sizeof(here)));
	assert_int_equal(chdir(in("t")), 0);
	for (int i = 0; i < 5 * TREE_REMOVE_LEVELS; i++)
		assert_true(mkdir("d", 0755) == 0 && chdir("d") == 0);
	assert_int_equal(chdir(here), 0);
	assert_int_equal(remove_all(in("t"), &err), 0);
	assert_int_equal(access(in("t"), F_OK), -1);
	assert_int_equal(access(in("keep/x"), F_OK), 0);
	assert_int_equal(remove_all(in("t"), &err), 0); /* gone is gone */
	assert_int_equal(remove_all("/proc/self/status", &err), -1);
}

/* --- watched directories ------------------------------------------------------------------ */

static void add_up(void *ctx, int wd)
{
	int *sum = ctx;

	*sum += wd;
}

static void directories_of_watches(void **state)
{
	struct watched_dirs d = { 0 };
	struct err err = { 0 };
	int sum = 0;

	(void)state;
	for (int i = 100; i > 0; i--) {
		char path[32];

		snprintf(path, sizeof(path), "d%d/x", i);
		assert_int_equal(watched_dirs_set(&d, i, path, &err), 0);
	}
	assert_int_equal(watched_dirs_set(&d, 7, "d1", &err), 0);
	assert_int_equal(d.n, 100);
	assert_string_equal(watched_dirs_find(&d, 7), "d1");
	assert_string_equal(watched_dirs_find(&d, 100), "d100/x");
	assert_null(watched_dirs_find(&d, 101));
	assert_true(watched_dirs_rename(&d, "d1", "e/f"));
	assert_string_equal(watched_dirs_find(&d, 1), "e/f/x");
	assert_string_equal(watched_dirs_find(&d, 7), "e/f");
	assert_string_equal(watched_dirs_find(&d, 10), "d10/x"); /* begins alike, and is another */
	watched_dirs_forget(&d, "e", add_up, &sum);
	assert_int_equal(sum, 1 + 7);
	assert_int_equal(d.n, 98);
	assert_null(watched_dirs_find(&d, 7));
	watched_dirs_drop(&d, 2);
	watched_dirs_drop(&d, 2);
	assert_null(watched_dirs_find(&d, 2));
	assert_string_equal(watched_dirs_find(&d, 3), "d3/x");
	watched_dirs_done(&d);
}

/* --- metrics ------------------------------------------------------------------------------ */

static void what_the_kernel_counts(void **state)
{
	struct memory_sizes m;
	struct cpu_times t;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(metrics_cpu(BYTES_LIT("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1\n"), &t, &err),
			 0);
	assert_int_equal(t.total, 36);
	assert_int_equal(t.busy, 27);
	assert_int_equal(metrics_cpu(BYTES_LIT("cpu  1 2 3\n"), &t, &err), -1);
	assert_int_equal(metrics_cpu(BYTES_LIT("intr 1\n"), &t, &err), -1);
	assert_int_equal(metrics_memory(BYTES_LIT("MemTotal:   100 kB\nMemFree: 10 kB\n"
						  "Buffers: 5 kB\nCached: 20 kB\n"
						  "SwapCached: 7 kB\nSReclaimable: 1 kB\n"),
					&m, &err),
			 0);
	assert_int_equal(m.total, 100 * 1024);
	assert_int_equal(m.used, 64 * 1024);
	assert_int_equal(m.cache, 21 * 1024);
	assert_int_equal(metrics_memory(BYTES_LIT("MemTotal: 1 kB\n"), &m, &err), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(permissions_as_go_writes_them),
		cmocka_unit_test(times_in_rfc_3339),
		cmocka_unit_test(paths_are_tidied),
		cmocka_unit_test_setup_teardown(numbers_have_names, open_place, close_place),
		cmocka_unit_test_setup_teardown(a_walk_in_order, open_place, close_place),
		cmocka_unit_test_setup_teardown(a_walk_that_skips_and_one_that_vanishes, open_place,
						close_place),
		cmocka_unit_test_setup_teardown(a_removal_of_any_depth, open_place, close_place),
		cmocka_unit_test(directories_of_watches),
		cmocka_unit_test(what_the_kernel_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
