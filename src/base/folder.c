/* folder.c - openat2, and what is built on it. */
/* #parses: names in folders, as they are; from the kernel, in a VM's own folder chosen by QEMU */
#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { PATH_SIZE = 512, COPY_PIECE = 64 * 1024 };

int folder_open(int dir, const char *path, int flags, mode_t mode, struct err *err)
{
	struct open_how how = {
		.flags = (unsigned int)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno,
			       "open %s", path);
	return fd;
}

int folder_make(int dir, const char *name, mode_t mode, struct err *err)
{
	AUTO(auto_close) int fd = -1;

	if (mkdirat(dir, name, 0700) < 0)
		return err_set(err, errno == EEXIST ? ERR_EXISTS : ERR_INTERNAL, errno,
			       "make folder %s", name);
	fd = folder_open(dir, name, O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0)
		return -1;
	if (fchmod(fd, mode) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set the mode of %s", name);
	return take_fd(&fd);
}

int folder_ensure(const char *path, mode_t mode, struct err *err)
{
	char part[PATH_SIZE];
	int fd;

	for (size_t i = 1; i < sizeof(part) && path[i - 1]; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, mode) < 0 && errno != EEXIST)
			return err_set(err, ERR_INTERNAL, errno, "make folder %s", part);
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "open folder %s", path);
	return fd;
}

int folder_each(int dir, folder_each_fn *each, void *context, struct err *err)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int failed = 0;

	if (!d)
		return err_set(err, ERR_INTERNAL, errno, "read a folder");
	while (failed == 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			failed = each(dir, e->d_name, context, err);
	closedir(d);
	return failed;
}

/* Where folders found on the way are moved to, so that no depth of nesting costs any of ours. */
struct removal_place {
	int top;
	unsigned int moved;
};

/* An entry of a folder that is being emptied: gone, or, if it is a folder, moved to the top. */
static int hoist(int dir, const char *name, void *context, struct err *err)
{
	struct removal_place *p = context;
	char to[32];
	int failed;

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	do { /* a name may be taken: by an interrupted removal, or by who made the tree */
		snprintf(to, sizeof(to), ".removed-%u", p->moved++);
		failed = renameat(dir, name, p->top, to);
	} while (failed && (errno == ENOTEMPTY || errno == EEXIST));
	if (failed)
		return err_set(err, ERR_INTERNAL, errno, "remove %s", name);
	return 0;
}

/* An entry of the top: gone, what was in it as well, but for the folders in it, which are now
 * entries of the top themselves. */
static int remove_level(int top, const char *name, void *context, struct err *err)
{
	AUTO(auto_close) int fd = -1;

	if (unlinkat(top, name, 0) == 0 || errno == ENOENT)
		return 0;
	fd = folder_open(top, name, O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0 || folder_each(fd, hoist, context, err) < 0)
		return -1;
	if (unlinkat(top, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return err_set(err, ERR_INTERNAL, errno, "remove folder %s", name);
	return 0;
}

int folder_remove(int dir, const char *name, struct err *err)
{
	AUTO(auto_close) int fd = -1;
	struct removal_place p = { 0 };

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	fd = folder_open(dir, name, O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0)
		return -1;
	p.top = fd;
	while (unlinkat(dir, name, AT_REMOVEDIR) < 0) {
		if (errno == ENOENT)
			return 0;
		if (errno != ENOTEMPTY)
			return err_set(err, ERR_INTERNAL, errno, "remove folder %s", name);
		if (folder_each(fd, remove_level, &p, err) < 0)
			return -1;
	}
	return 0;
}

int folder_write(int dir, const char *path, const char *text, struct err *err)
{
	AUTO(auto_close) int fd = folder_open(dir, path, O_WRONLY, 0, err);
	size_t n = strlen(text);

	if (fd < 0)
		return -1;
	if (write(fd, text, n) != (ssize_t)n)
		return err_set(err, ERR_INTERNAL, errno, "write %s to %s", text, path);
	return 0;
}

/* For two filesystems that cannot copy between them. */
static ssize_t copy_through_memory(int from, int to, off_t at, size_t len)
{
	uint8_t piece[COPY_PIECE]; /* not static: threads may copy at once */
	ssize_t n = pread(from, piece, len < sizeof(piece) ? len : sizeof(piece), at);

	return n <= 0 ? n : pwrite(to, piece, (size_t)n, at);
}

static int copy_range(int from, int to, off_t at, off_t end, struct err *err)
{
	bool direct = true;

	while (at < end) {
		off_t in = at, out = at;
		ssize_t n = direct ? copy_file_range(from, &in, to, &out, (size_t)(end - at), 0)
				   : copy_through_memory(from, to, at, (size_t)(end - at));

		if (direct && n < 0 && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP)) {
			direct = false;
			continue;
		}
		if (n <= 0)
			return err_set(err, ERR_INTERNAL, n < 0 ? errno : 0, "copy at %ld", at);
		at += n;
	}
	return 0;
}

int folder_copy(int from, int to, struct err *err)
{
	struct stat st;
	off_t at = 0;

	if (fstat(from, &st) < 0 || ftruncate(to, st.st_size) < 0)
		return err_set(err, ERR_INTERNAL, errno, "size a copy");
	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	while (at < st.st_size) {
		off_t data = lseek(from, at, SEEK_DATA);
		off_t hole = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);

		if (data < 0 && errno == ENXIO)
			return 0; /* only a hole is left */
		if (hole < 0)
			return err_set(err, ERR_INTERNAL, errno, "find data to copy");
		if (copy_range(from, to, data, hole, err) < 0)
			return -1;
		at = hole;
	}
	return 0;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

bool folder_name_ok(const char *name, size_t size)
{
	size_t n = strnlen(name, size);

	if (n == 0 || n == size || name[0] == '-')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!is_name_char(name[i]))
			return false;
	return true;
}
