/* snapshot_cache.c - advice to the kernel about files. */
/* #syscalls: openat openat2 newfstatat fstat fadvise64 lseek getdents64 close */
#include "node/files/snapshot_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "node/files/files_base.h"

enum {
	MIB = 1024 * 1024,
	STEP_BYTES = 128 * 1024, /* of one request to read ahead the kernel may drop what is more */
};

static int open_memory(const struct files_work *w, struct err *err)
{
	AUTO(auto_close)
	int folder = folder_open(w->snapshots, w->order.into, O_RDONLY | O_DIRECTORY, 0, err);

	return folder < 0 ? -1 : folder_open(folder, "memory", O_RDONLY, 0, err);
}

static int advise(int fd, off_t at, off_t bytes, int advice, struct err *err)
{
	int rc = posix_fadvise(fd, at, bytes, advice);

	return rc == 0 ? 0 : err_set(err, ERR_INTERNAL, rc, "advice for a file");
}

/* From `at` on, which is data, up to a hole or `*left`. Where it ended; -1: *err. */
static off_t warm_data(int fd, off_t at, off_t *left, struct err *err)
{
	off_t end = lseek(fd, at, SEEK_HOLE);

	if (end < 0)
		return err_set(err, ERR_INTERNAL, errno, "find a hole");
	for (off_t n; at < end && *left > 0; at += n, *left -= n) {
		n = end - at < STEP_BYTES ? end - at : STEP_BYTES;
		if (advise(fd, at, n, POSIX_FADV_WILLNEED, err) < 0)
			return -1;
	}
	return at;
}

int snapshot_cache_warm(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int fd = open_memory(w, err);
	off_t left = (off_t)w->order.need_mib * MIB, at = 0;

	if (fd < 0)
		return err->sys == ENOENT ? 0 : -1; /* it was removed meanwhile */
	/* pages of holes would be nothing but zeros in memory */
	while (left > 0 && (at = lseek(fd, at, SEEK_DATA)) >= 0)
		if ((at = warm_data(fd, at, &left, err)) < 0)
			return -1;
	return 0;
}

/* One that others have, too, is theirs: they may be in use. */
static int cool_file(int folder, const char *name, void *context, struct err *err)
{
	AUTO(auto_close) int fd = folder_open(folder, name, O_RDONLY, 0, err);
	struct stat st;

	(void)context;
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1)
		return 0;
	return advise(fd, 0, 0, POSIX_FADV_DONTNEED, err);
}

int snapshot_cache_cool(struct files_work *w, struct err *err)
{
	AUTO(auto_close)
	int folder = folder_open(w->snapshots, w->order.into, O_RDONLY | O_DIRECTORY, 0, err);

	if (folder < 0)
		return err->sys == ENOENT ? 0 : -1; /* the same */
	return folder_each(folder, cool_file, NULL, err);
}

int template_cache_cool(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = files_work_template(w, err);

	if (folder < 0)
		return w->opened.base == FILES_BASE_ABSENT ? 0 : -1; /* the same */
	return folder_each(folder, cool_file, NULL, err);
}
