/* files_small.c - see files_small.h. All of this blocks, for as long as a small file takes. */
#include "agent/machine/files_small.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/read_all.h"

enum { FIRST_PAGE = 4096, NAME_TEXT_MAX = 1024 };

static enum err_code code_of(int sys)
{
	return sys == ENOENT || sys == ENOTDIR ? ERR_NOT_FOUND : ERR_INTERNAL;
}

static int open_regular(const char *path, int flags, struct err *err)
{
	AUTO(auto_close) int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	struct stat st;

	if (fd < 0)
		return err_set(err, code_of(errno), errno, "open %s", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, 0, "%s is not a regular file", path);
	return take_fd(&fd);
}

int file_read(const char *path, struct buf *out, struct err *err)
{
	AUTO(auto_close) int fd = open_regular(path, O_RDONLY, err);

	if (fd < 0)
		return -1;
	return read_all(fd, out, err) < 0 ? err_wrap(err, "read %s", path) : 0;
}

int file_read_if_any(const char *path, struct buf *out, struct err *err)
{
	struct err why;

	if (file_read(path, out, &why) == 0 || why.code == ERR_NOT_FOUND)
		return 0;
	*err = why;
	return -1;
}

static int write_all(int fd, const char *path, struct bytes content, struct err *err)
{
	while (content.len > 0) {
		ssize_t n = write(fd, content.ptr, content.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return err_set(err, ERR_INTERNAL, errno, "write %s", path);
		content = bytes_tail(content, (size_t)n);
	}
	return 0;
}

enum content { OTHER, PLAIN, SAME }; /* what is in the place of a file */

static enum content look(const char *path, struct bytes content, mode_t mode)
{
	AUTO(buf_done) struct buf now = BUF_MAX(content.len + 1);
	struct err ignored;
	struct stat st;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink != 1)
		return OTHER;
	if ((st.st_mode & 07777) == mode && st.st_size == (off_t)content.len &&
	    file_read(path, &now, &ignored) == 0 && bytes_eq(buf_view(&now), content))
		return SAME;
	return PLAIN;
}

static int write_new(const char *path, struct bytes content, mode_t mode, struct err *err)
{
	AUTO(auto_close) int fd = -1;

	(void)unlink(path); /* of a run that was cut off */
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "create %s", path);
	if (write_all(fd, path, content, err) < 0)
		return -1;
	if (fchmod(fd, mode) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set the mode of %s", path);
	return 0;
}

/* A new file takes the name, in one step. */
static int file_replace(const char *path, struct bytes content, mode_t mode, struct err *err)
{
	char fresh[NAME_TEXT_MAX];

	if ((size_t)snprintf(fresh, sizeof(fresh), "%s.hotcell-new", path) >= sizeof(fresh))
		return err_set(err, ERR_INVALID, ENAMETOOLONG, "replace %s", path);
	if (write_new(fresh, content, mode, err) < 0) {
		(void)unlink(fresh);
		return -1;
	}
	if (rename(fresh, path) < 0) {
		err_set(err, ERR_INTERNAL, errno, "replace %s", path);
		(void)unlink(fresh);
		return -1;
	}
	return 0;
}

int file_overwrite(const char *path, struct bytes content, mode_t mode, struct err *err)
{
	AUTO(auto_close) int fd = open_regular(path, O_WRONLY | O_CREAT | O_NOFOLLOW, err);
	struct stat st;

	if (fd < 0)
		return -1;
	if (write_all(fd, path, content, err) < 0)
		return -1;
	/* only if needed: on a disk either is a transaction */
	if (fstat(fd, &st) < 0 ||
	    (st.st_size != (off_t)content.len && ftruncate(fd, (off_t)content.len) < 0) ||
	    ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0))
		return err_set(err, ERR_INTERNAL, errno, "overwrite %s", path);
	return 0;
}

int file_settle(const char *path, struct bytes content, mode_t mode, struct err *err)
{
	switch (look(path, content, mode)) {
	case SAME:
		return 0;
	case PLAIN:
		return file_overwrite(path, content, mode, err);
	case OTHER:
		return file_replace(path, content, mode, err);
	}
	abort();
}

int file_prepare(const char *path, struct bytes content, mode_t mode, struct err *err)
{
	AUTO(auto_close)
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0 || fchmod(fd, mode) < 0)
		return err_set(err, ERR_INTERNAL, errno, "create %s", path);
	(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, FIRST_PAGE); /* not every file system can */
	return write_all(fd, path, content, err);
}

int file_poke(const char *path, struct bytes content, struct err *err)
{
	AUTO(auto_close) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_set(err, code_of(errno), errno, "open %s", path);
	if (write(fd, content.ptr, content.len) != (ssize_t)content.len)
		return err_set(err, ERR_INTERNAL, errno, "write %s", path);
	return 0;
}

int dir_settle(const char *path, mode_t mode, struct err *err)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return chmod(path, mode) == 0 ? 0
					      : err_set(err, ERR_INTERNAL, errno, "chmod %s", path);
	if (errno != EEXIST)
		return err_set(err, ERR_INTERNAL, errno, "make %s", path);
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ERR_INTERNAL, ENOTDIR, "%s", path);
	return 0;
}
