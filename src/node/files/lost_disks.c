/* lost_disks.c - a disk is described and set aside; the oldest make room. */
/* #syscalls: openat openat2 newfstatat fstatfs statfs fstat fdatasync fsync unlinkat getdents64
 *	renameat renameat2 close */
#include "node/files/lost_disks.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "node/files/files_work.h"
#include "node/files/lost.h"
#include "node/journal/row_file.h"

enum { MIB = 1024 * 1024 };

/* --- room --------------------------------------------------------------------------------- */

/* Would there be so much without them? */
static bool would_do(const struct lost_list *all, int root, uint64_t needed_mib)
{
	struct err ignored;
	uint64_t bytes = 0;

	for (size_t i = 0; i < all->n; i++)
		if (all->all[i].kind == LOST_DISK)
			bytes += all->all[i].bytes;
	return bytes / MIB >= needed_mib ||
	       files_work_room(root, needed_mib - bytes / MIB, &ignored) == 0;
}

static void free_room(int lost, int root, const struct lost_list *all, uint64_t needed_mib)
{
	struct err err;

	for (size_t i = 0; i < all->n && files_work_room(root, needed_mib, &err) < 0; i++) {
		const struct lost_entry *e = &all->all[i];

		if (e->kind != LOST_DISK)
			continue;
		if (lost_drop(lost, e, &err) == 0)
			log_warn("lost/%s is removed: the host's disk is full", e->name);
		else if (err.code != ERR_NOT_FOUND)
			log_error("make room: %s", err.msg);
	}
}

int lost_disks_room(int root, uint64_t reserve_mib, uint64_t need_mib, struct err *err)
{
	uint64_t all_mib = reserve_mib + need_mib;
	AUTO(auto_close) int lost = -1;
	struct lost_list all;

	if (files_work_room(root, all_mib, err) == 0)
		return 0;
	if (err->code != ERR_NO_SPACE)
		return -1;
	lost = openat(root, "../lost", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (lost < 0 && errno == ENOENT)
		return -1;
	if (lost < 0)
		return err_set(err, ERR_INTERNAL, errno, "open the folder lost");
	if (lost_list(lost, &all, err) < 0)
		return -1;
	free_room(lost, root, &all, would_do(&all, root, all_mib) ? all_mib : reserve_mib);
	lost_list_done(&all);
	return files_work_room(root, all_mib, err);
}

/* --- one is kept -------------------------------------------------------------------------- */

bool lost_disk_is_described(int root, const char *id)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX + 1);
	struct err ignored;
	AUTO(auto_close) int folder = folder_open(root, id, O_RDONLY | O_DIRECTORY, 0, &ignored);
	struct journal_row row;
	bool ret;

	if (folder < 0 || row_file_read(folder, &text, &ignored) < 0 ||
	    row_get(buf_view(&text), &row, &ignored) < 0)
		return false;
	ret = row.sandbox.reason == NODE_LOST;
	row_done(&row);
	return ret;
}

/* What was saved of its memory is of no use any more: its disk went on. */
static int drop_memory(int folder, struct err *err)
{
	static const char *const names[] = { "pages",     "state",    "pages.new",
					     "state.new", FILES_MARK, ROW_FILE ".new" };

	for (size_t i = 0; i < COUNT(names); i++)
		if (unlinkat(folder, names[i], 0) < 0 && errno != ENOENT)
			return err_set(err, ERR_INTERNAL, errno, "remove %s", names[i]);
	return 0;
}

/* Nobody has it open any more. */
static int sync_disk(int folder, struct err *err)
{
	AUTO(auto_close) int disk = folder_open(folder, "disk", O_RDWR, 0, err);
	struct stat st;

	if (disk < 0 && err->sys != ENOENT)
		return -1;
	if (disk >= 0 && fstat(disk, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at its disk");
	if (disk < 0 || st.st_size == 0)
		return err_set(err, ERR_NOT_FOUND, 0, "it has no disk");
	return fdatasync(disk) < 0 ? err_set(err, ERR_INTERNAL, errno, "sync its disk") : 0;
}

static int set_aside(int root, const char *id, struct bytes row, struct err *err)
{
	AUTO(auto_close) int folder = folder_open(root, id, O_RDONLY | O_DIRECTORY, 0, err);
	AUTO(auto_close) int lost = -1;

	if (folder < 0 && err->sys == ENOENT)
		return err_set(err, ERR_NOT_FOUND, 0, "it has no folder");
	if (folder >= 0 && row_file_is_deleted(folder))
		return err_set(err, ERR_NOT_FOUND, 0, "its owner wanted it gone");
	if (folder < 0 || sync_disk(folder, err) < 0 || drop_memory(folder, err) < 0 ||
	    row_file_write(root, id, row, err) < 0)
		return -1;
	lost = lost_open(root, err);
	return lost < 0 ? -1 : lost_move(root, id, LOST_DISK, lost, clock_wall_ns(), err);
}

int lost_disk_keep(int root, const char *id, struct bytes row, uint64_t reserve_mib,
		   struct err *err)
{
	if (lost_disks_room(root, reserve_mib, 0, err) < 0)
		return -1;
	if (set_aside(root, id, row, err) == 0)
		return 0;
	if (err->sys == ENOSPC || err->sys == EDQUOT)
		err->code = ERR_NO_SPACE;
	else if (err->sys == EXDEV)
		err->code = ERR_NO_FILES;
	return -1;
}
