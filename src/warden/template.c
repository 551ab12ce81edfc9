/* template.c - files copied in, made durable, made visible by one rename. */
#include "warden/template.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "jail/descriptors.h"

static const char *const files[] = { WARDEN_TEMPLATE_FILES };

static void open_name(const char *id, char *ret, size_t size)
{
	snprintf(ret, size, WARDEN_OPEN_PREFIX "%s", id);
}

int template_open(int templates, const char *id, bool build, struct err *err)
{
	char name[sizeof(WARDEN_OPEN_PREFIX) + WARDEN_ID_MAX];
	int fd;

	if (build)
		open_name(id, name, sizeof(name));
	fd = folder_open(templates, build ? name : id, O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0)
		return err_wrap(err, "template %s", id);
	return fd;
}

/* The client may read it, to sum it up; only root and, while it builds, the VM may write it. */
static int make_file(const struct template_work *w, int dir, const char *name, int from,
		     struct err *err)
{
	AUTO(auto_close) int fd = folder_open(dir, name, O_RDWR | O_CREAT | O_EXCL, 0640, err);

	if (fd < 0 || (from >= 0 && folder_copy(from, fd, err) < 0))
		return err_wrap(err, "copy the %s", name);
	if (fchown(fd, 0, w->client_gid) < 0)
		return err_set(err, ERR_INTERNAL, errno, "give the client %s to read", name);
	return take_fd(&fd);
}

static int fill(const struct template_work *w, int dir, int *ret_manifest, struct err *err)
{
	AUTO(auto_close) int kernel = make_file(w, dir, "kernel", w->kernel, err);
	AUTO(auto_close) int disk = kernel < 0 ? -1 : make_file(w, dir, "disk", w->disk, err);
	AUTO(auto_close) int memory = disk < 0 ? -1 : make_file(w, dir, "memory", -1, err);
	AUTO(auto_close) int state = memory < 0 ? -1 : make_file(w, dir, "state", -1, err);
	AUTO(auto_close) int overlay = state < 0 ? -1 : make_file(w, dir, "overlay", -1, err);

	if (overlay < 0)
		return -1;
	if (ftruncate(memory, (off_t)w->memory_bytes) < 0)
		return err_set(err, ERR_INTERNAL, errno, "size the memory file");
	if (fchmod(kernel, 0444) < 0) /* QEMU opens it by name, under the VM's uid */
		return err_set(err, ERR_INTERNAL, errno, "open the kernel to its VM");
	*ret_manifest = make_file(w, dir, "manifest", -1, err);
	return *ret_manifest < 0 ? -1 : 0;
}

int template_begin_job(const void *args, struct job_result *ret, struct err *err)
{
	const struct template_work *w = args;
	char name[sizeof(WARDEN_OPEN_PREFIX) + WARDEN_ID_MAX];
	AUTO(auto_close) int dir = -1;

	if (descriptors_check(w->kernel, S_IFREG, O_RDONLY, "kernel", err) < 0 ||
	    descriptors_check(w->disk, S_IFREG, O_RDONLY, "disk", err) < 0)
		return -1;
	if (faccessat(w->templates, w->id, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(err, ERR_EXISTS, 0, "template %s exists", w->id);
	open_name(w->id, name, sizeof(name));
	dir = folder_make(w->templates, name, 0755, err);
	if (dir < 0)
		return -1;
	if (fill(w, dir, &ret->fds[0], err) < 0) {
		(void)!folder_remove(w->templates, name, &(struct err){ 0 });
		return err_wrap(err, "begin template %s", w->id);
	}
	ret->n_fds = 1;
	return 0;
}

/* The client still holds the manifest it wrote: what is published is a copy it cannot write. */
static int replace_manifest(int dir, struct err *err)
{
	AUTO(auto_close) int from = folder_open(dir, "manifest", O_RDONLY, 0, err);
	AUTO(auto_close) int to = -1;

	if (from < 0)
		return -1;
	to = folder_open(dir, "manifest.new", O_RDWR | O_CREAT | O_TRUNC, 0600, err);
	if (to < 0 || folder_copy(from, to, err) < 0)
		return -1;
	if (renameat(dir, "manifest.new", dir, "manifest") < 0)
		return err_set(err, ERR_INTERNAL, errno, "replace the manifest");
	return 0;
}

/* Root's, readable by all, writable by nobody, and on the disk. */
static int seal(int dir, const char *name, struct err *err)
{
	AUTO(auto_close) int fd = folder_open(dir, name, O_RDONLY, 0, err);

	if (fd < 0)
		return -1;
	if (fchown(fd, 0, 0) < 0 || fchmod(fd, 0444) < 0 || fsync(fd) < 0)
		return err_set(err, ERR_INTERNAL, errno, "seal %s", name);
	return 0;
}

int template_publish_job(const void *args, struct job_result *ret, struct err *err)
{
	const struct template_work *w = args;
	AUTO(auto_close) int dir = template_open(w->templates, w->id, true, err);
	char name[sizeof(WARDEN_OPEN_PREFIX) + WARDEN_ID_MAX];

	(void)ret;
	if (dir < 0 || replace_manifest(dir, err) < 0)
		return -1;
	for (size_t i = 0; i < COUNT(files); i++)
		if (seal(dir, files[i], err) < 0)
			return err_wrap(err, "publish template %s", w->id);
	open_name(w->id, name, sizeof(name));
	if (fsync(dir) < 0 || renameat(w->templates, name, w->templates, w->id) < 0 ||
	    fsync(w->templates) < 0)
		return err_set(err, ERR_INTERNAL, errno, "publish template %s", w->id);
	return 0;
}

int template_drop_job(const void *args, struct job_result *ret, struct err *err)
{
	const struct template_work *w = args;
	char name[sizeof(WARDEN_OPEN_PREFIX) + WARDEN_ID_MAX];

	(void)ret;
	open_name(w->id, name, sizeof(name));
	if (folder_remove(w->templates, name, err) < 0)
		return -1;
	return folder_remove(w->templates, w->id, err);
}

int template_warm_job(const void *args, struct job_result *ret, struct err *err)
{
	const struct template_work *w = args;
	AUTO(auto_close) int dir = template_open(w->templates, w->id, false, err);
	AUTO(auto_close) int fd = dir < 0 ? -1 : folder_open(dir, "memory", O_RDONLY, 0, err);
	static char scrap[1 << 20];
	off_t at = 0;

	(void)ret;
	if (fd < 0 || cgroup_join(w->cgroups, CGROUP_CACHE, getpid(), err) < 0)
		return -1;
	while ((at = lseek(fd, at, SEEK_DATA)) >= 0) {
		ssize_t n = pread(fd, scrap, sizeof(scrap), at);

		if (n <= 0)
			return err_set(err, ERR_INTERNAL, errno, "read the memory of %s", w->id);
		at += n;
	}
	return 0;
}

static int sweep_one(int templates, const char *name, void *context, struct err *err)
{
	const struct cells *keep = context;
	const size_t prefix = sizeof(WARDEN_OPEN_PREFIX) - 1;

	if (strncmp(name, WARDEN_OPEN_PREFIX, prefix) != 0 || cell_uses(keep, name + prefix, true))
		return 0;
	return folder_remove(templates, name, err);
}

int template_sweep(int templates, struct cells *keep, struct err *err)
{
	return folder_each(templates, sweep_one, keep, err);
}
