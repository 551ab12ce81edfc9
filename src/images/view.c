/* view.c - bind mounts, and one pivot_root. */
#include "images/view.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/folder.h"
#include "jail/confine.h"

enum { PATH_SIZE = 2 * PLACE_MAX };

static int make_file(const char *path, struct err *err)
{
	AUTO(auto_close) int dir = -1, fd = -1;
	char above[PATH_SIZE];

	snprintf(above, sizeof(above), "%s", path);
	*strrchr(above, '/') = '\0';
	dir = folder_ensure(above, 0755, err);
	if (dir < 0)
		return -1;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_EXCL, 0444);
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "make %s", path);
	return 0;
}

static int make_like(const char *from, const char *to, struct err *err)
{
	struct stat st;
	int dir;

	if (stat(from, &st) < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "%s", from);
	if (!S_ISDIR(st.st_mode))
		return make_file(to, err);
	dir = folder_ensure(to, 0755, err);
	if (dir < 0)
		return -1;
	close(dir);
	return 0;
}

/* With all that is mounted below it. */
static int bind(const char *root, const char *path, bool writable, struct err *err)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV |
					       (writable ? MOUNT_ATTR_NOEXEC : MOUNT_ATTR_RDONLY) };
	AUTO(auto_close) int tree = -1;
	char to[PATH_SIZE];

	snprintf(to, sizeof(to), "%s%s", root, path);
	if (make_like(path, to, err) < 0)
		return -1;
	tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (tree < 0 ||
	    mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0 ||
	    move_mount(tree, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_set(err, ERR_INTERNAL, errno, "show %s", path);
	return 0;
}

static bool exists(const char *path)
{
	return faccessat(AT_FDCWD, path, F_OK, AT_EACCESS) == 0;
}

/* /lib is a link into /usr in most systems, and a folder in some. */
static int show_link(const char *root, const char *path, struct err *err)
{
	char to[PATH_SIZE], target[64];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n < 0)
		return exists(path) ? bind(root, path, false, err) : 0;
	target[n] = '\0';
	snprintf(to, sizeof(to), "%s%s", root, path);
	if (symlink(target, to) < 0)
		return err_set(err, ERR_INTERNAL, errno, "link %s", path);
	return 0;
}

static int show_system(const char *root, struct err *err)
{
	static const char *const links[] = { "/lib", "/lib64" };
	static const char *const etc[] = {
		"/etc/ssl",   "/etc/ca-certificates", "/etc/resolv.conf",
		"/etc/hosts", "/etc/nsswitch.conf",   "/etc/ld.so.cache"
	};

	if (bind(root, "/usr", false, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(links); i++)
		if (show_link(root, links[i], err) < 0)
			return -1;
	for (size_t i = 0; i < COUNT(etc); i++)
		if (exists(etc[i]) && bind(root, etc[i], false, err) < 0)
			return -1;
	return 0;
}

static int show_programs(const char *root, const struct config_value *set, struct err *err)
{
	static const enum images_setting which[] = { SET_SKOPEO, SET_UNPACK, SET_AGENT };

	for (size_t i = 0; i < COUNT(which); i++) {
		const char *path = set[which[i]].text;

		if (strncmp(path, "/usr/", 5) != 0 && exists(path) &&
		    bind(root, path, false, err) < 0)
			return -1;
	}
	return 0;
}

/* Nothing is in it; a build with sanitizers wants to be allowed there. */
static int make_proc(const char *root, struct err *err)
{
	AUTO(auto_close) int dir = -1;
	char to[PATH_SIZE];

	snprintf(to, sizeof(to), "%s/proc", root);
	dir = folder_ensure(to, 0555, err);
	return dir < 0 ? -1 : 0;
}

/* Credentials are in memory alone. */
static int make_auth(const char *root, const char *path, const char *user, struct err *err)
{
	AUTO(auto_close) int dir = -1;
	char to[PATH_SIZE];

	snprintf(to, sizeof(to), "%s%s", root, path);
	dir = folder_ensure(to, 0700, err);
	if (dir < 0)
		return -1;
	if (mount("auth", to, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=0700,size=4m,nr_inodes=256,noswap") < 0 &&
	    mount("auth", to, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  "mode=0700,size=4m,nr_inodes=256") < 0)
		return err_set(err, ERR_INTERNAL, errno, "mount %s", to);
	return confine_folder(to, user, err);
}

static int put_together(const struct config_value *set, const struct places *p, struct err *err)
{
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("view", p->root, "tmpfs", MS_NOSUID | MS_NODEV,
		  "mode=0755,size=1m,nr_inodes=1k") < 0)
		return err_set(err, ERR_INTERNAL, errno, "mount %s", p->root);
	if (show_system(p->root, err) < 0 || make_proc(p->root, err) < 0 ||
	    show_programs(p->root, set, err) < 0 || bind(p->root, p->etc, false, err) < 0 ||
	    bind(p->root, p->store, true, err) < 0 ||
	    make_auth(p->root, p->auth, set[SET_USER].text, err) < 0)
		return -1;
	if (mount(NULL, p->root, NULL, MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV,
		  "mode=0755,size=1m,nr_inodes=1k") < 0)
		return err_set(err, ERR_INTERNAL, errno, "close the view");
	return 0;
}

int view_enter_images(const struct config_value *set, const struct places *p, struct err *err)
{
	if (put_together(set, p, err) < 0)
		return err_wrap(err, "the view of files");
	if (chdir(p->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_set(err, ERR_INTERNAL, errno, "change the root");
	return 0;
}
