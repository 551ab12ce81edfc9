/* files_disk.c - the disk of a paused sandbox: is it what it was when its pause was answered?
 *
 * A sum is of a disk that nobody writes. It is taken when the guest stands still and its disk is
 * synced, and stands in the row, and in the description beside the disk, while these say "paused".
 * It is compared before anybody may write the disk again, and gone from both before a guest runs.
 */
/* #syscalls: openat openat2 fstat newfstatat lseek pread64 close */
#include "node/files/files_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/folder.h"

int files_disk_sum(int disk, uint32_t *ret, struct err *err)
{
	struct checksum got;
	struct stat st;

	*ret = 0;
	if (fstat(disk, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at its disk");
	if ((uint64_t)st.st_blocks * 512 > FILES_DISK_SUM_MAX)
		return 0;
	if (files_work_sum(disk, &got, err) < 0)
		return err_wrap(err, "its disk");
	*ret = got.crc; /* one disk in four thousand million has a sum of 0, and is not compared */
	return 0;
}

int files_disk_check(int disk, uint32_t want, struct err *err)
{
	struct checksum got;

	if (want == 0)
		return 0;
	if (files_work_sum(disk, &got, err) < 0)
		return err_wrap(err, "the saved disk");
	if (got.crc != want)
		return err_set(err, ERR_INTERNAL, 0,
			       "the saved disk is damaged: CRC %08x, not %08x", got.crc, want);
	return 0;
}

int files_disk_read(struct files_work *w, struct err *err)
{
	AUTO(auto_close)
	int folder = folder_open(w->root, w->order.id, O_RDONLY | O_DIRECTORY, 0, err);
	AUTO(auto_close) int disk = folder < 0 ? -1 : folder_open(folder, "disk", O_RDONLY, 0, err);

	return disk < 0 ? -1 : files_disk_check(disk, w->order.disk_crc, err);
}
