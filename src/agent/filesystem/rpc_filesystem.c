/* rpc_filesystem.c - filesystem.Filesystem: Stat, MakeDir, Move, ListDir, Remove.
 *
 * All of it is done by root; what is made belongs to the user who asked.
 */
#include <errno.h>
#include <sys/stat.h>

#include "agent/files/dirs.h"
#include "agent/filesystem/entry.h"
#include "agent/filesystem/fs_call.h"
#include "agent/filesystem/tree_remove.h"
#include "agent/filesystem/tree_walk.h"
#include "agent/route.h"

enum { LIST_STEP = 256 }; /* entries per turn of the loop */

static bool path_of(struct fs_call *c, const json_t *message, const char *member, char *ret)
{
	return fs_path(c->agent, &c->who, message, member, ret, &c->fault);
}

/* --- Stat, MakeDir, Move ------------------------------------------------------------------ */

static int stat_start(struct fs_call *c, const json_t *message)
{
	char path[USER_PATH_MAX];

	return path_of(c, message, "path", path) ? fs_answer_entry(c, path) : FS_FAILED;
}

static int make_dir_start(struct fs_call *c, const json_t *message)
{
	char path[USER_PATH_MAX];
	struct stat st;

	if (!path_of(c, message, "path", path))
		return FS_FAILED;
	if (stat(path, &st) == 0)
		return S_ISDIR(st.st_mode)
			       ? fs_refuse(c, CONNECT_ALREADY_EXISTS, "directory already exists",
					   path)
			       : fs_refuse(c, CONNECT_INVALID_ARGUMENT,
					   "path already exists but it is not a directory", path);
	if (dirs_make(path, &c->who) < 0)
		return fs_fail(c, errno, "error creating directory", path);
	return fs_answer_entry(c, path);
}

static int move_start(struct fs_call *c, const json_t *message)
{
	char from[USER_PATH_MAX], to[USER_PATH_MAX];
	struct stat st;

	if (!path_of(c, message, "source", from) || !path_of(c, message, "destination", to))
		return FS_FAILED;
	if (lstat(from, &st) < 0) /* before anything is made for it */
		return errno == ENOENT || errno == ENOTDIR
			       ? fs_refuse(c, CONNECT_NOT_FOUND, "source file not found", from)
			       : fs_fail(c, errno, "error renaming", from);
	if (dirs_make_parents(to, &c->who) < 0)
		return fs_fail(c, errno, "error creating directory", to);
	if (rename(from, to) < 0)
		return fs_fail(c, errno, "error renaming", from);
	return fs_answer_entry(c, to);
}

/* --- ListDir ------------------------------------------------------------------------------ */

static int list_fail(struct fs_call *c, const char *path, const struct err *err)
{
	switch (err->sys) {
	case ENOENT:
		return fs_refuse(c, CONNECT_NOT_FOUND, "path not found", path);
	case ENOTDIR:
		return fs_refuse(c, CONNECT_INVALID_ARGUMENT, "path is not a directory", path);
	case 0:
		return fs_refuse(c, connect_code_of(err->code), err->msg, path);
	default:
		return fs_fail(c, err->sys, "error listing directory", path);
	}
}

static int list_start(struct fs_call *c, const json_t *message)
{
	char path[USER_PATH_MAX];
	int64_t depth = 0;
	struct err err;

	if (!path_of(c, message, "path", path))
		return FS_FAILED;
	if (json_may_int(message, "depth", 0, UINT32_MAX, &depth, &err) < 0)
		return fs_refuse(c, CONNECT_INVALID_ARGUMENT, err.msg, path);
	if (tree_walk_open(c->work, path, depth > 0 ? (uint32_t)depth : 1, &err) < 0)
		return list_fail(c, path, &err);
	if (buf_add(&c->answer, BYTES_LIT("{\"entries\":["), &err) < 0)
		return list_fail(c, path, &err);
	return FS_AGAIN;
}

/* What vanished since its name was read was never there. */
static int list_entry(struct fs_call *c, const char *path, struct err *err)
{
	size_t before = c->answer.len;
	bool first = c->answer.ptr[before - 1] == '[';

	if (!first && buf_add(&c->answer, BYTES_LIT(","), err) < 0)
		return -1;
	if (entry_put(&c->answer, path, &c->names, err) == 0)
		return 0;
	c->answer.len = before;
	return err->code == ERR_NOT_FOUND ? 0 : -1;
}

static int list_step(struct fs_call *c)
{
	struct tree_walk *w = c->work;
	struct tree_entry e;
	struct err err;
	int more = 1;

	for (int i = 0; i < LIST_STEP && more > 0; i++) {
		more = tree_walk_next(w, &e, &err);
		if (more > 0 && list_entry(c, e.path, &err) < 0)
			more = -1;
	}
	if (more < 0 || (more == 0 && buf_add(&c->answer, BYTES_LIT("]}"), &err) < 0))
		return list_fail(c, w->path, &err);
	return more ? FS_AGAIN : FS_DONE;
}

static void list_release(void *work)
{
	tree_walk_close(work);
}

/* --- Remove ------------------------------------------------------------------------------- */

static int remove_step(struct fs_call *c)
{
	struct tree_remove *r = c->work;
	struct err err;
	int more = tree_remove_step(r, &err);

	if (more < 0)
		return fs_fail(c, err.sys, "error removing file or directory", r->path);
	if (more == 0 && buf_add(&c->answer, BYTES_LIT("{}"), &err) < 0)
		return fs_refuse(c, CONNECT_RESOURCE_EXHAUSTED, err.msg, r->path);
	return more ? FS_AGAIN : FS_DONE;
}

/* A name that stands for a directory above would take that with it. */
static bool is_removable(const char *path)
{
	const char *name = path_name(path);

	return strcmp(name, "/") != 0 && strcmp(name, "..") != 0;
}

static int remove_start(struct fs_call *c, const json_t *message)
{
	char path[USER_PATH_MAX];

	if (!path_of(c, message, "path", path))
		return FS_FAILED;
	if (!is_removable(path))
		return fs_refuse(c, CONNECT_INVALID_ARGUMENT, "path cannot be removed", path);
	tree_remove_open(c->work, path);
	return remove_step(c);
}

static void remove_release(void *work)
{
	tree_remove_close(work);
}

/* --- routes ------------------------------------------------------------------------------- */

static const struct fs_method stat_method = { .start = stat_start };
static const struct fs_method make_dir_method = { .start = make_dir_start };
static const struct fs_method move_method = { .start = move_start };
static const struct fs_method list_method = { sizeof(struct tree_walk), list_start, list_step,
					      list_release };
static const struct fs_method remove_method = { sizeof(struct tree_remove), remove_start,
						remove_step, remove_release };

const struct route filesystem_routes[] = {
	{ "/filesystem.Filesystem/Stat", "POST", GUARD_CLIENT, .fs = &stat_method },
	{ "/filesystem.Filesystem/MakeDir", "POST", GUARD_CLIENT, .fs = &make_dir_method },
	{ "/filesystem.Filesystem/Move", "POST", GUARD_CLIENT, .fs = &move_method },
	{ "/filesystem.Filesystem/ListDir", "POST", GUARD_CLIENT, .fs = &list_method },
	{ "/filesystem.Filesystem/Remove", "POST", GUARD_CLIENT, .fs = &remove_method },
	{ 0 },
};
