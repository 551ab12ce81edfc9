/* upload.c - see upload.h. Disk writes block the loop; see files_read.c for why that is borne. */
#include "agent/files/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "agent/files/dirs.h"
#include "agent/files/file_metadata.h"
#include "base/random.h"

enum { NEW_FILE_MODE = 0644, TEMP_RANDOM = 16, TEMP_NAME_MAX = 64 };

static int fail(struct upload *u, struct err *err, const char *what)
{
	int sys = errno;

	switch (sys) {
	case ENOSPC:
	case EDQUOT:
		u->fault = UPLOAD_NO_SPACE;
		return err_set(err, ERR_EXHAUSTED, 0, "not enough disk space available");
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
		u->fault = UPLOAD_REFUSED;
		return err_set(err, ERR_INVALID, sys, "%s", what);
	default:
		u->fault = UPLOAD_BROKEN;
		return err_set(err, ERR_INTERNAL, sys, "%s", what);
	}
}

static int refuse(struct upload *u, struct err *err, const char *why)
{
	u->fault = UPLOAD_REFUSED;
	return err_set(err, ERR_INVALID, 0, "%s", why);
}

/* --- where it goes ------------------------------------------------------------------------ */

/* Opens the parent as u->dir and leaves the last segment in u->name. */
static int open_parent(struct upload *u, const char *path, const struct account *who,
		       struct err *err)
{
	struct bytes rest = bytes_str(path), segment;
	char name[UPLOAD_NAME_MAX + 1];

	u->dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (u->dir < 0)
		return fail(u, err, "open /");
	while (bytes_cut(&rest, '/', &segment)) {
		int next;

		if (segment.len == 0)
			continue;
		if (!bytes_to_str(segment, name, sizeof(name)))
			return refuse(u, err, "a name in the path is too long");
		next = dirs_step(u->dir, name, who);
		if (next < 0)
			return fail(u, err, "open the parent directory");
		close(u->dir);
		u->dir = next;
	}
	if (rest.len == 0 || bytes_eq(rest, BYTES_LIT(".")) || bytes_eq(rest, BYTES_LIT("..")))
		return refuse(u, err, "path is a directory");
	if (!bytes_to_str(rest, u->name, sizeof(u->name)))
		return refuse(u, err, "a name in the path is too long");
	return 0;
}

/* What is there already: a file's mode is kept, and `real` is its path without links. */
static int look_at_old(struct upload *u, const char *path, char real[static USER_PATH_MAX],
		       struct err *err)
{
	AUTO(auto_close) int old = open(path, O_PATH | O_CLOEXEC);
	char link[64];
	struct stat st;
	ssize_t n;

	snprintf(real, USER_PATH_MAX, "%s", path);
	u->mode = NEW_FILE_MODE;
	if (old < 0)
		return 0; /* missing, or for open_parent() to complain about */
	if (fstat(old, &st) < 0)
		return fail(u, err, "look at the file");
	if (S_ISDIR(st.st_mode))
		return refuse(u, err, "path is a directory");
	if (!S_ISREG(st.st_mode))
		return refuse(u, err, "path is not a regular file");
	u->mode = st.st_mode & 0777;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", old);
	n = readlink(link, real, USER_PATH_MAX - 1);
	if (n <= 0 || real[0] != '/')
		return fail(u, err, "resolve the path");
	real[n] = '\0';
	return 0;
}

/* --- where it lies until then ------------------------------------------------------------- */

static bool same_mount(int a, int b)
{
	struct statx sa, sb;

	return statx(a, "", AT_EMPTY_PATH, STATX_MNT_ID, &sa) == 0 &&
	       statx(b, "", AT_EMPTY_PATH, STATX_MNT_ID, &sb) == 0 &&
	       (sa.stx_mask & sb.stx_mask & STATX_MNT_ID) && sa.stx_mnt_id == sb.stx_mnt_id;
}

static int open_nameless(struct upload *u, int staging)
{
	int dir = staging >= 0 && same_mount(staging, u->dir) ? staging : u->dir;

	u->staging = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	if (u->staging < 0)
		return -1;
	return openat(u->staging, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
}

static int open_in_place(struct upload *u)
{
	u->in_place = true;
	return openat(u->dir, u->name,
		      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, u->mode);
}

/* File systems say it in different ways. What else is wrong with the path, the next try tells. */
static bool never_nameless(int sys)
{
	return sys == EOPNOTSUPP || sys == EISDIR || sys == ENOENT || sys == EINVAL ||
	       sys == EPERM || sys == EACCES;
}

static int open_file(struct upload *u, int staging, const struct account *who, struct err *err)
{
	u->fd = open_nameless(u, staging);
	if (u->fd < 0 && never_nameless(errno))
		u->fd = open_in_place(u);
	if (u->fd < 0)
		return fail(u, err, "create the file");
	if (u->in_place) {
		/* files of the kernel have no owner to change */
		(void)!fchown(u->fd, who->uid, who->gid);
		return 0;
	}
	if (fchown(u->fd, who->uid, who->gid) < 0 || fchmod(u->fd, u->mode) < 0)
		return fail(u, err, "give the file to its owner");
	return 0;
}

int upload_open(struct upload *u, const char *path, int staging, const struct account *who,
		struct err *err)
{
	char real[USER_PATH_MAX];

	*u = (struct upload){ .dir = -1, .staging = -1, .fd = -1 };
	if (look_at_old(u, path, real, err) < 0 || open_parent(u, real, who, err) < 0 ||
	    open_file(u, staging, who, err) < 0) {
		upload_close(u);
		return -1;
	}
	return 0;
}

int upload_write(struct upload *u, struct bytes piece, struct err *err)
{
	while (piece.len > 0) {
		ssize_t n = write(u->fd, piece.ptr, piece.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail(u, err, "write");
		piece = bytes_tail(piece, (size_t)n);
	}
	return 0;
}

int upload_note(struct upload *u, json_t *metadata, struct err *err)
{
	return metadata_set(u->fd, metadata) < 0 ? fail(u, err, "set the metadata") : 0;
}

/* --- its appearance ----------------------------------------------------------------------- */

static int link_as(const struct upload *u, int dir, const char *name)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", u->fd);
	return linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW);
}

/* In the place of an old one: only a file with a name can be renamed. */
static int replace(struct upload *u)
{
	char temp[TEMP_NAME_MAX] = ".hotcell-";
	size_t n = strlen(temp);

	random_name(temp + n, TEMP_RANDOM);
	if (link_as(u, u->staging, temp) < 0)
		return -1;
	if (renameat(u->staging, temp, u->dir, u->name) == 0)
		return 0;
	n = (size_t)errno;
	(void)unlinkat(u->staging, temp, 0);
	errno = (int)n;
	return -1;
}

/* Watchers of the folder saw a file appear. As if it had been made, given to its owner and written
 * in its place, they are told of the last two under its name, too. That changes only its times,
 * even if somebody writes to it at this very moment. */
static void tell_watchers(const struct upload *u)
{
	AUTO(auto_close)
	int fd = openat(u->dir, u->name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	struct stat ours, there;

	if (fd < 0 || fstat(u->fd, &ours) < 0 || fstat(fd, &there) < 0)
		return;
	if (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)
		return;
	(void)futimens(fd, NULL);
	if (ours.st_size > 0)
		(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, ours.st_size);
}

int upload_publish(struct upload *u, struct err *err)
{
	if (u->in_place)
		return 0;
	if (link_as(u, u->dir, u->name) < 0 && (errno != EEXIST || replace(u) < 0))
		return fail(u, err, "name the file");
	tell_watchers(u);
	return 0;
}

void upload_close(struct upload *u)
{
	int *const fds[] = { &u->dir, &u->staging, &u->fd };

	for (size_t i = 0; i < COUNT(fds); i++) {
		auto_close(fds[i]);
		*fds[i] = -1;
	}
}
