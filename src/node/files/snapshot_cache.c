/* snapshot_cache.c - advice to the kernel about one file. */
/* #syscalls: openat openat2 fadvise64 close */
#include "node/files/snapshot_cache.h"

#include <errno.h>
#include <fcntl.h>

#include "base/folder.h"

enum { MIB = 1024 * 1024 };

/* Of `bytes` from its beginning; 0: of all of it. */
static int advise(const struct files_work *w, off_t bytes, int advice, struct err *err)
{
	AUTO(auto_close)
	int folder = folder_open(w->snapshots, w->order.into, O_RDONLY | O_DIRECTORY, 0, err);
	AUTO(auto_close) int fd = folder < 0 ? -1 : folder_open(folder, "memory", O_RDONLY, 0, err);
	int rc;

	if (fd < 0)
		return err->sys == ENOENT ? 0 : -1; /* it was removed meanwhile */
	rc = posix_fadvise(fd, 0, bytes, advice);
	return rc == 0 ? 0 : err_set(err, ERR_INTERNAL, rc, "advise of a snapshot's memory");
}

int snapshot_cache_warm(struct files_work *w, struct err *err)
{
	return advise(w, (off_t)w->order.need_mib * MIB, POSIX_FADV_WILLNEED, err);
}

int snapshot_cache_cool(struct files_work *w, struct err *err)
{
	return advise(w, 0, POSIX_FADV_DONTNEED, err);
}
