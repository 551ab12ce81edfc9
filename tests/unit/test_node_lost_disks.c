/* test_node_lost_disks.c - disks of sandboxes that lost their VMs: kept, and in nobody's way. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/folder.h"
#include "node/files/lost.h"
#include "node/files/lost_disks.h"
#include "node/journal/rebuild.h"
#include "node/journal/row_file.h"
#include "node/files/sandbox_files.h"

enum { NO_ROOM_MIB = 1024 * 1024 * 1024, SMALL_MIB = 64, DISK_MIB = 16 };

static struct world {
	char base[64];
	int root, lost;
} w;

static int set_up(void **state)
{
	char path[128];
	struct err err;

	(void)state;
	w = (struct world){ .base = "/tmp/hotcell-disks-XXXXXX" };
	assert_non_null(mkdtemp(w.base));
	snprintf(path, sizeof(path), "%s/sandboxes", w.base);
	assert_int_equal(mkdir(path, 0700), 0);
	w.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w.lost = lost_open(w.root, &err);
	assert_true(w.root >= 0 && w.lost >= 0);
	return 0;
}

static int tear_down(void **state)
{
	AUTO(auto_close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	(void)state;
	close(w.root);
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

static void describe(const char *id, struct buf *ret)
{
	struct journal_row row = { .state = JOURNAL_PAUSED, .sandbox.reason = NODE_LOST };
	struct err err;

	snprintf(row.sandbox.id, sizeof(row.sandbox.id), "%s", id);
	assert_int_equal(row_put(&row, ret, &err), 0);
}

static enum err_code keep(const char *id, uint64_t reserve_mib)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX);
	struct err err = { 0 };

	describe(id, &text);
	return lost_disk_keep(w.root, id, buf_view(&text), reserve_mib, &err) < 0 ? err.code
										  : ERR_NONE;
}

static size_t n_lost(enum lost_kind kind)
{
	struct lost_list all;
	struct err err;
	size_t n = 0;

	assert_int_equal(lost_list(w.lost, &all, &err), 0);
	for (size_t i = 0; i < all.n; i++)
		n += all.all[i].kind == kind;
	lost_list_done(&all);
	return n;
}

static void it_is_paused_with_its_disk_alone(void **state)
{
	static const char *const dropped[] = { "pages", "state", "pages.new", FILES_MARK };
	struct journal_row row;
	struct lost_list all;
	struct err err;

	(void)state;
	put(w.root, "i1", "disk", "disk");
	for (size_t i = 0; i < COUNT(dropped); i++)
		put(w.root, "i1", dropped[i], "of before");
	assert_int_equal(keep("i1", 0), ERR_NONE);
	assert_int_equal(faccessat(w.root, "i1", F_OK, 0), -1);
	assert_int_equal(lost_list(w.lost, &all, &err), 0);
	assert_int_equal(all.n, 1);
	assert_true(all.all[0].kind == LOST_DISK && all.all[0].described);

	AUTO(auto_close)
	int folder = folder_open(w.lost, all.all[0].name, O_RDONLY | O_DIRECTORY, 0, &err);

	assert_int_equal(rebuild_read(folder, "i1", &row, &err), 0);
	assert_int_equal(row.sandbox.reason, NODE_ALIVE); /* brought back it is like any other */
	row_done(&row);
	assert_int_equal(faccessat(folder, "disk", F_OK, 0), 0);
	for (size_t i = 0; i < COUNT(dropped); i++)
		assert_int_equal(faccessat(folder, dropped[i], F_OK, 0), -1);
	lost_list_done(&all);
}

/* Node died between the description and the move. */
static void one_that_is_described_already_is_known(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX);
	struct err err;

	(void)state;
	put(w.root, "i1", "disk", "disk");
	assert_false(lost_disk_is_described(w.root, "i1"));
	put(w.root, "i1", "row", "of a pause");
	assert_false(lost_disk_is_described(w.root, "i1"));
	describe("i1", &text);
	assert_int_equal(row_file_write(w.root, "i1", buf_view(&text), &err), 0);
	assert_true(lost_disk_is_described(w.root, "i1"));
	assert_int_equal(keep("i1", 0), ERR_NONE);
	assert_false(lost_disk_is_described(w.root, "i1"));
	assert_int_equal(n_lost(LOST_DISK), 1);
}

static void without_a_disk_there_is_nothing_to_keep(void **state)
{
	(void)state;
	assert_int_equal(keep("i1", 0), ERR_NOT_FOUND);
	put(w.root, "i2", "disk", ""); /* a create that got no further */
	assert_int_equal(keep("i2", 0), ERR_NOT_FOUND);
	assert_int_equal(n_lost(LOST_DISK), 0);
}

/* So many descriptors, and no more. */
static void allow_descriptors(int more)
{
	struct rlimit limit;
	int next = dup(w.root);

	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = more < 0 ? limit.rlim_max : (rlim_t)(next + more);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Whoever asked removes what has no disk: nothing may look like that for another reason. */
static void what_cannot_be_told_now_is_tried_again(void **state)
{
	enum err_code got;

	(void)state;
	put(w.root, "i1", "disk", "disk");
	for (int more = 0; more < 2; more++) { /* its folder; its disk */
		allow_descriptors(more);
		got = keep("i1", 0);
		allow_descriptors(-1);
		assert_true(got != ERR_NONE && got != ERR_NOT_FOUND && got != ERR_NO_SPACE);
		assert_int_equal(faccessat(w.root, "i1/disk", F_OK, 0), 0);
	}
	assert_int_equal(keep("i1", 0), ERR_NONE);
}

/* A journal of before knows it still. */
static void what_its_owner_wanted_gone_is_not_kept(void **state)
{
	(void)state;
	put(w.root, "i1", "disk", "disk");
	put(w.root, "i1", ROW_DELETED, "");
	assert_int_equal(keep("i1", 0), ERR_NOT_FOUND);
	assert_int_equal(n_lost(LOST_DISK), 0);
	assert_int_equal(faccessat(w.root, "i1/" ROW_DELETED, F_OK, 0), 0);
}

/* What stays for a week does, and so does all else. */
static void on_a_full_disk_none_is_kept(void **state)
{
	struct err err;

	(void)state;
	put(w.root, "i1", "disk", "disk");
	put(w.root, "i2", "disk", "disk");
	put(w.lost, "20261116t120000z-sandbox-i3", "disk", "disk");
	assert_int_equal(lost_disks_room(w.root, 0, 0, &err), 0);
	assert_int_equal(keep("i1", 0), ERR_NONE);
	assert_int_equal(n_lost(LOST_DISK), 1);
	assert_int_equal(keep("i2", NO_ROOM_MIB), ERR_NO_SPACE);
	assert_int_equal(n_lost(LOST_DISK), 0);
	assert_int_equal(n_lost(LOST_SANDBOX), 1);
	assert_int_equal(faccessat(w.root, "i2/disk", F_OK, 0), 0); /* whoever asked sees to it */
	assert_int_equal(faccessat(w.root, "i2/row", F_OK, 0), -1);
}

/* --- on a small disk of its own ------------------------------------------------------------- */

/* A file system at sandboxes/, or below all of it, that only this process sees. */
static void use_small(bool all)
{
	char path[128], size[32];
	struct err err;

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip(); /* as root alone */
	close(w.root);
	close(w.lost);
	snprintf(path, sizeof(path), "%s%s", w.base, all ? "" : "/sandboxes");
	snprintf(size, sizeof(size), "size=%dm", SMALL_MIB);
	assert_int_equal(mount("none", path, "tmpfs", 0, size), 0);
	snprintf(path, sizeof(path), "%s/sandboxes", w.base);
	assert_true(mkdir(path, 0700) == 0 || !all);
	w.root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	w.lost = lost_open(w.root, &err);
	assert_true(w.root >= 0 && w.lost >= 0);
}

static int tear_down_small(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/sandboxes", w.base);
	if (umount2(path, MNT_DETACH) < 0)
		(void)umount2(w.base, MNT_DETACH);
	return tear_down(state);
}

static void put_large(const char *id)
{
	static char mib[1024 * 1024];
	char path[64];
	int fd;

	put(w.root, id, "disk", "");
	snprintf(path, sizeof(path), "%s/disk", id);
	fd = openat(w.root, path, O_WRONLY | O_CLOEXEC);
	for (int i = 0; i < DISK_MIB; i++)
		assert_int_equal(write(fd, mib, sizeof(mib)), sizeof(mib));
	close(fd);
}

/* What needs more than all of them take would not be helped. */
static void they_go_for_what_then_fits(void **state)
{
	const uint64_t most = SMALL_MIB - 2; /* some is the file system's own */
	struct err err;

	(void)state;
	use_small(true);
	put_large("i1");
	put_large("i2");
	assert_int_equal(keep("i1", 0), ERR_NONE);
	assert_int_equal(keep("i2", 0), ERR_NONE);
	assert_int_equal(lost_disks_room(w.root, 1, SMALL_MIB, &err), -1);
	assert_int_equal(err.code, ERR_NO_SPACE);
	assert_int_equal(n_lost(LOST_DISK), 2);
	assert_int_equal(lost_disks_room(w.root, 1, most - DISK_MIB - 1, &err), 0);
	assert_int_equal(n_lost(LOST_DISK), 1);
	assert_int_equal(lost_disks_room(w.root, most, SMALL_MIB, &err), -1); /* the reserve */
	assert_int_equal(n_lost(LOST_DISK), 0);
}

/* It would be tried again and again. */
static void what_cannot_move_to_lost_is_not_kept(void **state)
{
	(void)state;
	use_small(false);
	put(w.root, "i1", "disk", "disk");
	assert_int_equal(keep("i1", 0), ERR_NO_FILES);
	assert_int_equal(faccessat(w.root, "i1/disk", F_OK, 0), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(it_is_paused_with_its_disk_alone),
		T(one_that_is_described_already_is_known),
		T(without_a_disk_there_is_nothing_to_keep),
		T(what_cannot_be_told_now_is_tried_again),
		T(what_its_owner_wanted_gone_is_not_kept),
		T(on_a_full_disk_none_is_kept),
		cmocka_unit_test_setup_teardown(they_go_for_what_then_fits, set_up,
						tear_down_small),
		cmocka_unit_test_setup_teardown(what_cannot_move_to_lost_is_not_kept, set_up,
						tear_down_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
