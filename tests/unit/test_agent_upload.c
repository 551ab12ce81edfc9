/* test_agent_upload.c - a file appears whole, in one step, or not at all. */
#include "tests/unit/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "agent/machine/files_small.h"
#include "agent/files/upload.h"

struct place {
	char root[64];
	int staging;
	struct account me;
};

static const char *in(const struct place *p, const char *path)
{
	static char full[1024];

	snprintf(full, sizeof(full), "%s/%s", p->root, path);
	return full;
}

static void open_place(struct place *p)
{
	*p = (struct place){ .root = "/tmp/hotcell-upload-XXXXXX", .staging = -1 };
	assert_non_null(mkdtemp(p->root));
	assert_int_equal(mkdir(in(p, "staging"), 0700), 0);
	assert_int_equal(mkdir(in(p, "d"), 0755), 0);
	p->staging = open(in(p, "staging"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(p->staging >= 0);
	p->me.uid = getuid();
	p->me.gid = getgid();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
	(void)st;
	(void)type;
	(void)where;
	return remove(path);
}

static void close_place(struct place *p)
{
	close(p->staging);
	assert_int_equal(nftw(p->root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static int entries(const struct place *p, const char *dir)
{
	DIR *d = opendir(in(p, dir));
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2; /* . and .. */
}

static void expect(const struct place *p, const char *path, const char *want)
{
	AUTO(buf_done) struct buf got = BUF_MAX(4096);
	struct err err = { 0 };

	assert_int_equal(file_read(in(p, path), &got, &err), 0);
	assert_true(bytes_eq(buf_view(&got), bytes_str(want)));
}

static void put(const struct place *p, const char *path, const char *text)
{
	struct upload u;
	struct err err = { 0 };

	assert_int_equal(upload_open(&u, in(p, path), p->staging, &p->me, &err), 0);
	assert_false(u.in_place);
	assert_int_equal(upload_write(&u, bytes_str(text), &err), 0);
	assert_int_equal(upload_publish(&u, &err), 0);
	upload_close(&u);
	expect(p, path, text);
}

static void it_appears_with_its_parents_when_it_is_whole(void **state)
{
	struct place p;
	struct upload u;
	struct stat st;
	struct err err = { 0 };

	(void)state;
	open_place(&p);
	assert_int_equal(upload_open(&u, in(&p, "d/a/b//c.txt"), p.staging, &p.me, &err), 0);
	assert_int_equal(upload_write(&u, BYTES_LIT("one"), &err), 0);
	assert_int_equal(upload_write(&u, BYTES_LIT("two"), &err), 0);
	assert_int_equal(entries(&p, "d/a/b"), 0);
	assert_int_equal(entries(&p, "staging"), 0);
	assert_int_equal(upload_publish(&u, &err), 0);
	upload_close(&u);
	expect(&p, "d/a/b/c.txt", "onetwo");
	assert_int_equal(stat(in(&p, "d/a/b/c.txt"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(stat(in(&p, "d/a/b"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
	close_place(&p);
}

static void cut_off_it_never_was(void **state)
{
	struct place p;
	struct upload u;
	struct err err = { 0 };

	(void)state;
	open_place(&p);
	put(&p, "d/old", "old");
	assert_int_equal(upload_open(&u, in(&p, "d/old"), p.staging, &p.me, &err), 0);
	assert_int_equal(upload_write(&u, BYTES_LIT("new"), &err), 0);
	upload_close(&u);
	upload_close(&u);
	expect(&p, "d/old", "old");
	assert_int_equal(entries(&p, "d"), 1);
	assert_int_equal(entries(&p, "staging"), 0);
	close_place(&p);
}

static void a_new_one_keeps_the_mode_of_the_old(void **state)
{
	struct place p;
	struct stat st;

	(void)state;
	open_place(&p);
	put(&p, "d/x", "old");
	assert_int_equal(chmod(in(&p, "d/x"), 0750), 0);
	put(&p, "d/x", "new");
	assert_int_equal(stat(in(&p, "d/x"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(entries(&p, "d"), 1);
	assert_int_equal(entries(&p, "staging"), 0);
	close_place(&p);
}

static void links_lead_to_the_file(void **state)
{
	struct place p;
	struct stat st;

	(void)state;
	open_place(&p);
	assert_int_equal(mkdir(in(&p, "real"), 0755), 0);
	put(&p, "real/f", "old");
	assert_int_equal(symlink("../real/f", in(&p, "d/link")), 0);
	put(&p, "d/link", "new");
	assert_int_equal(lstat(in(&p, "d/link"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	expect(&p, "real/f", "new");
	assert_int_equal(symlink("real", in(&p, "way")), 0);
	put(&p, "way/g", "through a folder");
	expect(&p, "real/g", "through a folder");
	close_place(&p);
}

static void what_cannot_be_a_file_is_refused(void **state)
{
	static const struct {
		const char *name, *path;
	} rows[] = {
		{ "a folder", "d" },
		{ "a folder that is not there", "d/x/" },
		{ "dot", "d/." },
		{ "dot dot", "d/.." },
		{ "below a file", "file/x" },
		{ "a pipe", "pipe" },
		{ "a loop", "loop/x" },
	};
	struct place p;

	(void)state;
	open_place(&p);
	put(&p, "file", "x");
	assert_int_equal(mkfifo(in(&p, "pipe"), 0600), 0);
	assert_int_equal(symlink("loop", in(&p, "loop")), 0);
	FOR_ROWS(row, rows) {
		struct upload u;
		struct err err = { 0 };

		assert_int_equal(upload_open(&u, in(&p, row->path), p.staging, &p.me, &err), -1);
		assert_int_equal(u.fault, UPLOAD_REFUSED);
	}
	close_place(&p);
}

static void a_name_of_255_bytes_is_the_longest(void **state)
{
	struct place p;
	struct upload u;
	char path[512];
	struct err err = { 0 };

	(void)state;
	open_place(&p);
	memset(path, 'n', sizeof(path));
	memcpy(path, "d/", 2);
	path[2 + 255] = '\0';
	put(&p, path, "x");
	path[2 + 255] = 'n';
	path[2 + 256] = '\0';
	assert_int_equal(upload_open(&u, in(&p, path), p.staging, &p.me, &err), -1);
	assert_int_equal(u.fault, UPLOAD_REFUSED);
	close_place(&p);
}

/* Names and kinds of what a watcher of the folder saw, but for openings and closings. */
static void collect(int fd, char *ret, size_t size)
{
	_Alignas(struct inotify_event) char raw[4096];
	ssize_t n = read(fd, raw, sizeof(raw));
	size_t len = 0;

	ret[0] = '\0';
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(raw + at);
		int more = snprintf(ret + len, size - len, "%s:%s ", e->len ? e->name : "",
				    e->mask & IN_CREATE     ? "create"
				    : e->mask & IN_MODIFY   ? "write"
				    : e->mask & IN_MOVED_TO ? "moved-to"
							    : "other");

		len += (size_t)more;
		at += (ssize_t)(sizeof(*e) + e->len);
	}
}

static void watchers_see_a_write_under_its_name_and_nothing_else(void **state)
{
	struct place p;
	char seen[1024];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	(void)state;
	open_place(&p);
	assert_true(inotify_add_watch(fd, in(&p, "d"),
				      IN_CREATE | IN_MODIFY | IN_MOVE | IN_DELETE) >= 0);
	put(&p, "d/x", "new");
	collect(fd, seen, sizeof(seen));
	assert_string_equal(seen, "x:create x:write ");
	put(&p, "d/x", "newer");
	collect(fd, seen, sizeof(seen));
	assert_string_equal(seen, "x:moved-to x:write ");
	close(fd);
	close_place(&p);
}

static void without_a_staging_folder_it_lies_beside_its_target(void **state)
{
	struct place p;
	int staging;

	(void)state;
	open_place(&p);
	staging = p.staging;
	p.staging = -1;
	put(&p, "d/x", "new");
	put(&p, "d/x", "newer");
	assert_int_equal(entries(&p, "d"), 1);
	p.staging = staging;
	close_place(&p);
}

static void files_of_the_kernel_are_written_in_place(void **state)
{
	static const char path[] = "/proc/self/coredump_filter";
	AUTO(buf_done) struct buf got = BUF_MAX(64);
	struct place p;
	struct upload u;
	struct err err = { 0 };

	(void)state;
	open_place(&p);
	assert_int_equal(upload_open(&u, path, p.staging, &p.me, &err), 0);
	assert_true(u.in_place);
	assert_int_equal(upload_write(&u, BYTES_LIT("0x21"), &err), 0);
	assert_int_equal(upload_publish(&u, &err), 0);
	upload_close(&u);
	assert_int_equal(file_read(path, &got, &err), 0);
	assert_true(bytes_eq(buf_view(&got), BYTES_LIT("00000021\n")));
	close_place(&p);
}

static void a_full_disk_has_a_name_of_its_own(void **state)
{
	struct place p;
	struct upload u;
	struct err err = { 0 };

	(void)state;
	open_place(&p);
	assert_int_equal(upload_open(&u, in(&p, "d/x"), p.staging, &p.me, &err), 0);
	close(u.fd);
	u.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	assert_int_equal(upload_write(&u, BYTES_LIT("x"), &err), -1);
	assert_int_equal(u.fault, UPLOAD_NO_SPACE);
	assert_string_equal(err.msg, "not enough disk space available");
	upload_close(&u);
	close_place(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_appears_with_its_parents_when_it_is_whole),
		cmocka_unit_test(cut_off_it_never_was),
		cmocka_unit_test(a_new_one_keeps_the_mode_of_the_old),
		cmocka_unit_test(links_lead_to_the_file),
		cmocka_unit_test(what_cannot_be_a_file_is_refused),
		cmocka_unit_test(a_name_of_255_bytes_is_the_longest),
		cmocka_unit_test(watchers_see_a_write_under_its_name_and_nothing_else),
		cmocka_unit_test(without_a_staging_folder_it_lies_beside_its_target),
		cmocka_unit_test(files_of_the_kernel_are_written_in_place),
		cmocka_unit_test(a_full_disk_has_a_name_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
