/* overlay_file.c - a copy that shares blocks where the filesystem can. */
/* #syscalls: openat2 copy_file_range fstat newfstatat ftruncate lseek pread64 pwrite64 unlinkat */
#include "vm/overlay_file.h"

#include <errno.h>
#include <fcntl.h>

#include "base/folder.h"

int overlay_file_make(int template_folder, int folder, const char *name, struct err *err)
{
	AUTO(auto_close) int empty = folder_open(template_folder, "overlay", O_RDONLY, 0, err);
	AUTO(auto_close) int fd = -1;

	if (empty < 0)
		return -1;
	fd = folder_open(folder, name, O_RDWR | O_CREAT | O_EXCL, 0600, err);
	if (fd < 0) {
		err->code = err->sys == EEXIST ? ERR_EXISTS : err->code;
		return -1;
	}
	if (folder_copy(empty, fd, err) < 0) {
		unlinkat(folder, name, 0);
		return err_wrap(err, "make the disk %s", name);
	}
	return take_fd(&fd);
}
