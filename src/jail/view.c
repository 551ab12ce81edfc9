/* view.c - bind mounts, and one pivot_root. */
/* #parses: a list of libraries, of QEMU and at start only; from the host's dynamic loader */
#include "jail/view.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "jail/oneshot.h"

enum { LIST_TEXT_MAX = 64 * 1024 };

static const char loader[] = "/lib64/ld-linux-x86-64.so.2";
/* What `microvm` without ACPI loads: it starts a PVH kernel by itself, no option ROM needed. */
static const char firmware[] = "qboot.rom";

static int add_file(struct view *v, struct bytes from, struct bytes to, struct err *err)
{
	struct view_file *f = &v->files[v->n];

	if (v->n == VIEW_FILES_MAX || !bytes_to_str(from, f->from, sizeof(f->from)) ||
	    !bytes_to_str(to, f->to, sizeof(f->to)))
		return err_set(err, ERR_EXHAUSTED, 0, "too many or too long file names");
	v->n++;
	return 0;
}

/* In the first of the folders that has it. */
static bool find(const char *dirs, struct bytes name, char ret[static VIEW_PATH_MAX])
{
	struct bytes rest = bytes_str(dirs), dir;

	while (bytes_next(&rest, ':', &dir)) {
		snprintf(ret, VIEW_PATH_MAX, "%.*s/%.*s", (int)dir.len, (const char *)dir.ptr,
			 (int)name.len, (const char *)name.ptr);
		if (faccessat(AT_FDCWD, ret, R_OK, 0) == 0)
			return true;
	}
	return false;
}

/* A line of the loader's list: `libz.so.1 => /lib/.../libz.so.1 (0x7f...)`. The vdso and the
 * loader itself have no arrow. One of that name among the firmware stands in for the library. */
static int add_library(struct view *v, struct bytes line, const char *dirs, struct err *err)
{
	struct bytes name, path;
	char from[VIEW_PATH_MAX];

	if (!bytes_cut(&line, '=', &name))
		return 0;
	line = bytes_trim(bytes_tail(line, 1));
	name = bytes_trim(name);
	if (!bytes_cut(&line, ' ', &path) || path.len == 0 || path.ptr[0] != '/')
		return err_set(err, ERR_INVALID, 0, "a library was not found: %.*s", (int)name.len,
			       (const char *)name.ptr);
	return add_file(v, find(dirs, name, from) ? bytes_str(from) : path, path, err);
}

static int add_firmware(struct view *v, const char *name, const char *dirs, struct err *err)
{
	char from[VIEW_PATH_MAX], to[VIEW_PATH_MAX];

	if (!find(dirs, bytes_str(name), from))
		return err_set(err, ERR_NOT_FOUND, 0, "firmware %s is in none of %s", name, dirs);
	snprintf(to, sizeof(to), VIEW_FIRMWARE "/%s", name);
	return add_file(v, bytes_str(from), bytes_str(to), err);
}

int view_list(struct view *ret, const char *path, const char *firmware_dirs, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(LIST_TEXT_MAX);
	const char *const argv[] = { loader, "--list", path, NULL };
	const struct oneshot list = { .argv = argv, .output = &text };
	struct bytes rest, line;

	ret->n = 0;
	if (oneshot_run(&list, err) < 0)
		return err_wrap(err, "list the libraries of %s", path);
	if (add_file(ret, bytes_str(path), bytes_str(path), err) < 0 ||
	    add_file(ret, bytes_str(loader), bytes_str(loader), err) < 0)
		return -1;
	rest = buf_view(&text);
	while (bytes_cut(&rest, '\n', &line))
		if (add_library(ret, line, firmware_dirs, err) < 0)
			return -1;
	return add_firmware(ret, firmware, firmware_dirs, err);
}

static int mount_at(const char *from, const char *to, const char *type, unsigned long flags,
		    const char *data, struct err *err)
{
	if (mount(from, to, type, flags, data) < 0)
		return err_set(err, ERR_INTERNAL, errno, "mount %s", to);
	return 0;
}

static int make_file(const char *path, struct err *err)
{
	AUTO(auto_close) int fd = -1;
	char dir[VIEW_PATH_MAX * 2];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	*slash = '\0';
	fd = folder_ensure(dir, 0755, err);
	if (fd < 0)
		return -1;
	close(fd);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_EXCL, 0444);
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "make %s", path);
	return 0;
}

static int bind_file(const char *at, const struct view_file *f, struct err *err)
{
	char to[VIEW_PATH_MAX * 2];

	snprintf(to, sizeof(to), "%s%s", at, f->to);
	if (make_file(to, err) < 0 || mount_at(f->from, to, NULL, MS_BIND, NULL, err) < 0)
		return -1;
	return mount_at(NULL, to, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV,
			NULL, err);
}

static int make_places(const char *at, struct err *err)
{
	AUTO(auto_close) int own = -1;
	char path[VIEW_PATH_MAX * 2];

	snprintf(path, sizeof(path), "%s" VIEW_OWN, at);
	own = folder_ensure(path, 0755, err);
	if (own < 0)
		return -1;
	snprintf(path, sizeof(path), "%s" VIEW_MEMORY, at);
	if (make_file(path, err) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s" VIEW_KERNEL, at);
	return make_file(path, err);
}

int view_build(const struct view *v, const char *at, struct err *err)
{
	AUTO(auto_close) int fd = folder_ensure(at, 0700, err);

	if (fd < 0)
		return -1;
	if (unshare(CLONE_NEWNS) < 0)
		return err_set(err, ERR_DENIED, errno, "enter an own mount namespace");
	if (mount_at(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL, err) < 0 ||
	    mount_at("view", at, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m,nr_inodes=1k",
		     err) < 0)
		return -1;
	for (size_t i = 0; i < v->n; i++)
		if (bind_file(at, &v->files[i], err) < 0)
			return -1;
	if (make_places(at, err) < 0)
		return -1;
	return mount_at(NULL, at, NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV,
			"mode=0755,size=1m,nr_inodes=1k", err);
}

int view_detach(int fd, bool writable, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       MOUNT_ATTR_NOEXEC |
					       (writable ? 0 : MOUNT_ATTR_RDONLY) };
	AUTO(auto_close)
	int tree = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_set(err, ERR_INTERNAL, errno, "detach a mount");
	return take_fd(&tree);
}

int view_open_again(int fd, struct err *err)
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				      .resolve = RESOLVE_NO_SYMLINKS };
	char link[32], path[PATH_MAX];
	AUTO(auto_close) int again = -1;
	struct stat theirs, ours;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	again = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	if (again < 0 || fstat(fd, &theirs) < 0 || fstat(again, &ours) < 0 ||
	    theirs.st_dev != ours.st_dev || theirs.st_ino != ours.st_ino)
		return err_set(err, ERR_INVALID, 0, "a file that has no name here");
	return take_fd(&again);
}

static int place(int tree, const char *path, struct err *err)
{
	if (move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_set(err, ERR_INTERNAL, errno, "place %s", path);
	return 0;
}

/* The clone stands on top of the tree it was cloned from; chdir follows the topmost mount. */
static int enter_clone(const char *at, struct err *err)
{
	AUTO(auto_close)
	int tree = open_tree(AT_FDCWD, at, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (tree < 0)
		return err_set(err, ERR_INTERNAL, errno, "clone the view");
	if (move_mount(tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) < 0 || chdir(at) < 0)
		return err_set(err, ERR_INTERNAL, errno, "enter the view");
	return 0;
}

int view_enter(const char *at, const struct view_cell *cell, struct err *err)
{
	if (enter_clone(at, err) < 0 || place(cell->own, "." VIEW_OWN, err) < 0 ||
	    place(cell->memory, "." VIEW_MEMORY, err) < 0 ||
	    place(cell->kernel, "." VIEW_KERNEL, err) < 0)
		return -1;
	if (syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_set(err, ERR_INTERNAL, errno, "change the root");
	return 0;
}
