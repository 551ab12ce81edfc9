/* tree_remove.c - see tree_remove.h. */
#include "agent/filesystem/tree_remove.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/random.h"

enum { TEMP_RANDOM = 16, TEMP_NAME_MAX = 64 };

static int fail(struct err *err, const char *what)
{
	return err_set(err, ERR_INTERNAL, errno, "%s", what);
}

void tree_remove_open(struct tree_remove *r, const char *path)
{
	*r = (struct tree_remove){ 0 };
	snprintf(r->path, sizeof(r->path), "%s", path);
}

void tree_remove_close(struct tree_remove *r)
{
	while (r->n > 0)
		closedir(r->levels[--r->n].dir);
}

static int top_fd(const struct tree_remove *r)
{
	return r->n > 0 ? dirfd(r->levels[r->n - 1].dir) : AT_FDCWD;
}

static int enter(struct tree_remove *r, const char *name, struct err *err)
{
	AUTO(auto_close)
	int fd = openat(top_fd(r), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && errno == ENOENT)
		return 0;
	if (!d)
		return fail(err, "open a directory");
	(void)take_fd(&fd);
	r->levels[r->n].dir = d;
	r->levels[r->n].tries = 0;
	snprintf(r->levels[r->n].name, sizeof(r->levels[r->n].name), "%s", r->n > 0 ? name : "");
	r->n++;
	return 0;
}

/* Too deep to be entered: up to the top, where it will be met again. */
static int raise_up(struct tree_remove *r, const char *name, struct err *err)
{
	char temp[TEMP_NAME_MAX] = ".hotcell-";

	r->levels[0].tries = 0; /* it is ours, this time, that fills it */
	random_name(temp + strlen(temp), TEMP_RANDOM);
	if (renameat(top_fd(r), name, dirfd(r->levels[0].dir), temp) < 0 && errno != ENOENT)
		return fail(err, "move a directory");
	return 0;
}

static bool is_dir(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int remove_one(struct tree_remove *r, const char *name, struct err *err)
{
	int dir = top_fd(r);

	if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && (errno != EPERM || !is_dir(dir, name)))
		return fail(err, "remove a file");
	if (r->n > 0 && unlinkat(dir, name, AT_REMOVEDIR) == 0) /* empty, as most are */
		return 0;
	return r->n < TREE_REMOVE_LEVELS ? enter(r, name, err) : raise_up(r, name, err);
}

/* The directory at the top was read to its end. Others may have added to it meanwhile. */
static int leave(struct tree_remove *r, struct err *err)
{
	size_t i = r->n - 1;
	int above = i > 0 ? dirfd(r->levels[i - 1].dir) : AT_FDCWD;
	const char *name = i > 0 ? r->levels[i].name : r->path;

	if (unlinkat(above, name, AT_REMOVEDIR) == 0 || errno == ENOENT) {
		closedir(r->levels[i].dir);
		r->n--;
		return 0;
	}
	if ((errno != ENOTEMPTY && errno != EEXIST) || r->levels[i].tries++ == TREE_REMOVE_TRIES)
		return fail(err, "remove a directory");
	rewinddir(r->levels[i].dir);
	return 0;
}

static int step(struct tree_remove *r, struct err *err)
{
	const struct dirent *e;

	errno = 0;
	e = readdir(r->levels[r->n - 1].dir);
	if (!e)
		return errno ? fail(err, "read a directory") : leave(r, err);
	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
		return 0;
	return remove_one(r, e->d_name, err);
}

int tree_remove_step(struct tree_remove *r, struct err *err)
{
	if (r->n == 0) {
		if (unlink(r->path) == 0 || errno == ENOENT || errno == ENOTDIR)
			return 0;
		if (errno != EISDIR && (errno != EPERM || !is_dir(AT_FDCWD, r->path)))
			return fail(err, "remove a file");
		if (enter(r, r->path, err) < 0)
			return -1;
	}
	for (int i = 0; i < TREE_REMOVE_STEPS && r->n > 0; i++)
		if (step(r, err) < 0)
			return -1;
	return r->n > 0;
}
