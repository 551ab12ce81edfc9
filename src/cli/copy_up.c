/* copy_up.c - files and folders of this machine to a sandbox. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/copy.h"

enum { MODE_USUAL = 0644 }; /* what the agent gives a new file */

struct place { /* a file or folder, and where it goes */
	const char *shown, *to;
	int depth;
};

static int put_dir(struct copying *c, int dir, const struct place *p, struct err *err);

static int put_file(struct copying *c, int fd, const struct stat *st, const struct place *p,
		    struct err *err)
{
	struct err why;

	if (copy_put(c, fd, (uint64_t)st->st_size, p->to, err) < 0)
		return -1;
	if ((st->st_mode & 0777) != MODE_USUAL &&
	    copy_chmod(c, p->to, st->st_mode & 0777, &why) < 0 && run_session_signal(&c->s) == 0)
		copy_skip(c, p->shown, "its mode; the rest is there");
	return 0;
}

/* What was opened as `fd`. */
static int put_any(struct copying *c, int fd, const struct place *p, struct err *err)
{
	struct stat st;

	if (copy_count(c, p->depth, err) < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%.128s", p->shown);
	if (S_ISDIR(st.st_mode))
		return put_dir(c, fd, p, err);
	if (S_ISREG(st.st_mode))
		return put_file(c, fd, &st, p, err);
	copy_skip(c, p->shown, "it is neither a file nor a folder");
	return 0;
}

/* One of a folder. Links are not followed: what they mean here is nothing there. */
static int put_entry(struct copying *c, int dir, const char *name, const struct place *in,
		     struct err *err)
{
	char shown[COPY_PATH_MAX], to[COPY_PATH_MAX];
	AUTO(auto_close) int fd = -1;

	if (!copy_join(in->shown, name, shown) || !copy_join(in->to, name, to))
		return err_set(err, ERR_INVALID, 0, "%.128s...: too long", in->shown);
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && (errno == ELOOP || errno == ENXIO)) {
		copy_skip(c, shown, errno == ELOOP ? "it is a link" : "it is a socket");
		return 0;
	}
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "%.128s", shown);
	return put_any(c, fd, &(struct place){ shown, to, in->depth + 1 }, err);
}

static int put_dir(struct copying *c, int dir, const struct place *p, struct err *err)
{
	int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again < 0 ? NULL : fdopendir(again);
	struct dirent *e;
	int rc = copy_make_dir(c, p->to, err);

	if (!d && again >= 0)
		close(again);
	if (rc == 0 && !d)
		rc = err_set(err, ERR_INTERNAL, errno, "%.128s", p->shown);
	while (rc == 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = put_entry(c, dir, e->d_name, p, err);
	if (d)
		closedir(d);
	return rc;
}

int copy_up(struct copying *c, char *from, const char *to, bool into, struct err *err)
{
	AUTO(auto_close) int fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char path[COPY_PATH_MAX];
	const char *base = copy_base(from);

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno, "%.128s",
			       from);
	if (!copy_join(to, into ? base : "", path))
		return err_set(err, ERR_INVALID, 0, "%.128s...: too long", to);
	return put_any(c, fd, &(struct place){ from, into ? path : to, 0 }, err);
}
