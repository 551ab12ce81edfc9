/* copy_down.c - files and folders of a sandbox to this machine. All names are a guest's. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/copy.h"

struct target { /* where something goes: a name in a folder that is open */
	int dir;
	const char *name;
	const char *shown; /* where it comes from, a path in the sandbox */
	int depth;
};

static int failed(const struct target *t, struct err *err)
{
	return err_set(err, errno == ENOSPC ? ERR_NO_SPACE : ERR_INTERNAL, errno, "%.128s",
		       t->name);
}

/* A file is there when it is whole: it takes the place of a file, and of nothing else. */
static int may_replace(const struct target *t, struct err *err)
{
	struct stat st;

	if (fstatat(t->dir, t->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : failed(t, err);
	if (S_ISREG(st.st_mode))
		return 0;
	return err_set(err, ERR_EXISTS, 0, "%.128s is there, and no regular file", t->name);
}

static int get_file(struct copying *c, const struct target *t, const struct copy_entry *e,
		    struct err *err)
{
	AUTO(auto_close) int fd = -1;
	char part[64];

	if (may_replace(t, err) < 0)
		return -1;
	snprintf(part, sizeof(part), ".hotcell-cp-%d", (int)getpid());
	(void)unlinkat(t->dir, part, 0); /* of one that was killed, under the same number */
	fd = openat(t->dir, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		    (e->mode ? e->mode : 0644) | 0600);
	if (fd < 0)
		return failed(t, err);
	if (copy_get(c, t->shown, e, fd, err) == 0) {
		if (renameat(t->dir, part, t->dir, t->name) == 0)
			return 0;
		(void)failed(t, err);
	}
	(void)unlinkat(t->dir, part, 0);
	return -1;
}

static int get_any(struct copying *c, const struct target *t, const struct copy_entry *e,
		   struct err *err);

static int get_entry(struct copying *c, int dir, const struct target *in, const json_t *v,
		     struct err *err)
{
	struct copy_entry e;
	char shown[COPY_PATH_MAX];

	copy_entry_read(v, &e);
	if (!copy_name_ok(e.name)) {
		copy_skip(c, in->shown, "a name in it is none that a file may have here");
		return 0;
	}
	if (!copy_join(in->shown, e.name, shown))
		return err_set(err, ERR_INVALID, 0, "%.128s...: too long", in->shown);
	if (e.link || (!e.dir && !e.file)) {
		copy_skip(c, shown, e.link ? "it is a link" : "it is neither a file nor a folder");
		return 0;
	}
	return get_any(c, &(struct target){ dir, e.name, shown, in->depth + 1 }, &e, err);
}

/* What is in it, into `dir`. */
static int get_entries(struct copying *c, int dir, const struct target *t, struct err *err)
{
	AUTO(json_decrefp) json_t *all = NULL;
	json_t *v;
	size_t i;

	if (copy_list(c, t->shown, &all, err) < 0)
		return -1;
	json_array_foreach(all, i, v)
	{
		if (get_entry(c, dir, t, v, err) < 0)
			return -1;
	}
	return 0;
}

static int get_dir(struct copying *c, const struct target *t, const struct copy_entry *e,
		   struct err *err)
{
	AUTO(auto_close) int dir = -1;

	if (mkdirat(t->dir, t->name, (e->mode ? e->mode : 0755) | 0700) < 0 && errno != EEXIST)
		return failed(t, err);
	dir = openat(t->dir, t->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return failed(t, err);
	return get_entries(c, dir, t, err);
}

static int get_any(struct copying *c, const struct target *t, const struct copy_entry *e,
		   struct err *err)
{
	if (copy_count(c, t->depth, err) < 0)
		return -1;
	if (e->dir)
		return get_dir(c, t, e, err);
	if (e->file)
		return get_file(c, t, e, err);
	copy_skip(c, t->shown, "it is neither a file nor a folder");
	return 0;
}

/* The folder that `to` is in, opened, and the name in it. Both are the user's own, links and all.
 */
static int open_parent(const char *to, char path[static COPY_PATH_MAX], const char **ret_name,
		       struct err *err)
{
	char *slash;
	int dir;

	if (!copy_join(to, "", path) && strlen(to) + 1 >= COPY_PATH_MAX)
		return err_set(err, ERR_INVALID, 0, "%.128s...: too long", to);
	snprintf(path, COPY_PATH_MAX, "%s", to);
	*ret_name = copy_base(path);
	slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	dir = open(!slash ? "." : slash == path ? "/" : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? err_set(err, ERR_INTERNAL, errno, "%.128s", to) : dir;
}

/* `to` is a folder that is there. */
static int get_into(struct copying *c, char *from, const char *to, const struct copy_entry *e,
		    struct err *err)
{
	AUTO(auto_close) int dir = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct target t = { dir, copy_base(from), from, 0 };

	if (dir < 0)
		return err_set(err, ERR_INTERNAL, errno, "%.128s", to);
	if (!*t.name && e->dir) /* SANDBOX:. and the like: what is in it */
		return get_entries(c, dir, &t, err);
	if (!copy_name_ok(t.name))
		return err_set(err, ERR_INVALID, 0, "%.128s: no name for a file", from);
	return get_any(c, &t, e, err);
}

int copy_down(struct copying *c, char *from, const char *to, bool into, struct err *err)
{
	AUTO(auto_close) int dir = -1;
	struct target t = { .shown = from };
	struct copy_entry e;
	char path[COPY_PATH_MAX];

	(void)copy_base(from);
	if (copy_stat(c, from, &e, err) < 0)
		return err_wrap(err, "%.128s", from);
	if (into)
		return get_into(c, from, to, &e, err);
	dir = open_parent(to, path, &t.name, err);
	if (dir < 0)
		return -1;
	t.dir = dir;
	if (!copy_name_ok(t.name))
		return err_set(err, ERR_INVALID, 0, "%.128s: no name for a file", to);
	return get_any(c, &t, &e, err);
}
