/* template_job.c - what the thread does with a template's files. */
/* #syscalls: openat pread64 pwrite64 fsync close */
#include "vm/template_job.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

#include "vm/kernel_version.h"

struct template_job {
	struct work work;
	struct template_watcher *watcher;
	struct template_files files;
	int into; /* -1: verify */
	struct manifest manifest;
	enum manifest_reason reason;
};

void template_files_init(struct template_files *f)
{
	for (size_t i = 0; i < MANIFEST_FILES; i++)
		f->fd[i] = -1;
}

static void template_files_done(struct template_files *f)
{
	for (size_t i = 0; i < MANIFEST_FILES; i++)
		if (f->fd[i] >= 0)
			close(take_fd(&f->fd[i]));
}

static int open_file(int dir, const char *name, struct err *err)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_UNAVAILABLE, errno,
			       "open the template's %s", name);
	return fd;
}

int template_files_open(struct template_files *ret, int dir, struct err *err)
{
	template_files_init(ret);
	for (size_t i = 0; i < MANIFEST_FILES; i++) {
		ret->fd[i] = open_file(dir, manifest_file_name((enum manifest_file)i), err);
		if (ret->fd[i] < 0) {
			template_files_done(ret);
			return -1;
		}
	}
	return 0;
}

int template_manifest_read(int dir, struct manifest *ret, struct err *err)
{
	AUTO(auto_close) int fd = open_file(dir, "manifest", err);
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX + 1);
	uint8_t *room;
	ssize_t n;

	if (fd < 0 || buf_reserve(&text, MANIFEST_BYTES_MAX + 1, &room, err) < 0)
		return -1;
	n = pread(fd, room, MANIFEST_BYTES_MAX + 1, 0); /* a regular file: all of it at once */
	if (n < 0)
		return err_set(err, ERR_INTERNAL, errno, "read the manifest");
	buf_claim(&text, (size_t)n);
	return manifest_parse(buf_view(&text), ret, err);
}

int template_manifest_write(int fd, const struct manifest *m, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);

	if (manifest_put(m, &text, err) < 0)
		return -1;
	for (size_t at = 0; at < text.len;) {
		ssize_t n = pwrite(fd, text.ptr + at, text.len - at, (off_t)at);

		if (n < 0)
			return err_set(err, ERR_INTERNAL, errno, "write the manifest");
		at += (size_t)n;
	}
	return fsync(fd) < 0 ? err_set(err, ERR_INTERNAL, errno, "sync the manifest") : 0;
}

/* --- on the thread ------------------------------------------------------------------------ */

static int sum_up(struct template_job *j, struct checksum *ret, struct err *err)
{
	for (size_t i = 0; i < MANIFEST_FILES; i++)
		if (checksum_file(j->files.fd[i], &j->work.stop, &ret[i], err) < 0)
			return err_wrap(err, "%s", manifest_file_name((enum manifest_file)i));
	return 0;
}

static int seal_run(struct work *w, struct err *err)
{
	struct template_job *j = CONTAINER_OF(w, struct template_job, work);

	if (sum_up(j, j->manifest.files, err) < 0 ||
	    kernel_version(j->files.fd[MANIFEST_KERNEL_FILE], j->manifest.made_with.kernel_version,
			   sizeof(j->manifest.made_with.kernel_version), err) < 0)
		return -1;
	return template_manifest_write(j->into, &j->manifest, err);
}

static int verify_run(struct work *w, struct err *err)
{
	struct template_job *j = CONTAINER_OF(w, struct template_job, work);
	struct checksum found[MANIFEST_FILES];

	if (sum_up(j, found, err) < 0)
		return -1;
	return manifest_check_files(&j->manifest, found, &j->reason, err);
}

/* --- on the loop -------------------------------------------------------------------------- */

static void on_done(struct work *w, const struct err *err)
{
	struct template_job *j = CONTAINER_OF(w, struct template_job, work);

	j->watcher->ops->on_done(j->watcher, err ? NULL : &j->manifest, j->reason, err);
}

static void job_free(struct work *w)
{
	struct template_job *j = CONTAINER_OF(w, struct template_job, work);

	template_files_done(&j->files);
	if (j->into >= 0)
		close(j->into);
	free(j);
}

static int start(const struct template_spec *spec, int into, struct template_job **ret,
		 struct err *err)
{
	struct template_job *j = calloc(1, sizeof(*j));

	if (!j) {
		template_files_done(spec->files);
		if (into >= 0)
			close(into);
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate a template's job");
	}
	j->watcher = spec->watcher;
	j->files = *spec->files;
	template_files_init(spec->files);
	j->into = into;
	j->manifest = *spec->manifest;
	j->work.run = into >= 0 ? seal_run : verify_run;
	j->work.on_done = on_done;
	j->work.free = job_free;
	if (work_start(&j->work, spec->loop, err) < 0)
		return -1;
	*ret = j;
	return 0;
}

int template_seal(const struct template_spec *spec, int into, struct template_job **ret,
		  struct err *err)
{
	assert(into >= 0);
	return start(spec, into, ret, err);
}

int template_verify(const struct template_spec *spec, struct template_job **ret, struct err *err)
{
	return start(spec, -1, ret, err);
}

void template_job_cancel(struct template_job *j)
{
	if (j)
		work_cancel(&j->work);
}
