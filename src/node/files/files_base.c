/* files_base.c - what a sandbox or snapshot differs from: is it still what it was?
 *
 * A boot is not reproducible: another template of the same kernel and disk has another memory and
 * another disk, and a difference from the one is nonsense on the other. So a row says the sums of
 * what its sandbox was made of, each load compares them with the manifest's, and the files are read
 * once in the life of a node.
 */
/* #syscalls: openat openat2 fstat newfstatat lseek pread64 close */
#include "node/files/files_base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/folder.h"
#include "vm/template_job.h"

/* What sandboxes need of a template; overlay and device state are for new ones alone. */
static const enum manifest_file needed[] = { MANIFEST_KERNEL_FILE, MANIFEST_DISK_FILE,
					     MANIFEST_MEMORY_FILE };

/* What is not there is lost, for now; whatever else keeps us from it may pass. */
static int cannot(struct files_work *w, struct err *err)
{
	bool lost = err->sys == ENOENT || err->code == ERR_MISMATCH;

	err_wrap(err, "template %s", w->order.template_id);
	err->code = lost ? ERR_BASE_LOST : ERR_UNAVAILABLE;
	return -1;
}

int files_work_template(struct files_work *w, struct err *err)
{
	char path[FILES_FOLDER_MAX + 128];
	int fd;

	snprintf(path, sizeof(path), "%s/" WARDEN_TEMPLATE_PATH, w->state_dir,
		 w->order.template_id);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	if (errno == ENOENT)
		w->opened.base = FILES_BASE_ABSENT;
	err_set(err, ERR_UNAVAILABLE, errno, "open its folder");
	return cannot(w, err);
}

/* 1: it is damaged or missing; -1: that is not known, *err. */
static int is_bad(int folder, enum manifest_file f, const struct checksum *want, struct err *err)
{
	const char *name = manifest_file_name(f);
	struct err why;
	AUTO(auto_close) int fd = folder_open(folder, name, O_RDONLY, 0, &why);
	bool known = fd < 0 && why.sys == ENOENT;

	if (fd >= 0 && files_work_compare(fd, want, name, true, &why) == 0)
		return 0;
	if (known || (fd >= 0 && why.code == ERR_INTERNAL && why.sys == 0))
		return 1;
	*err = why;
	return -1;
}

static int read_files(struct files_work *w, int folder, const struct manifest *m, struct err *err)
{
	uint32_t bad = 0;

	for (size_t i = 0; i < COUNT(needed); i++) {
		int rc = is_bad(folder, needed[i], &m->files[needed[i]], err);

		if (rc < 0)
			return cannot(w, err);
		bad |= rc ? 1u << needed[i] : 0;
	}
	w->opened.base = FILES_BASE_READ;
	w->opened.base_bad = bad;
	memcpy(w->opened.base_vmm, m->made_with.vmm_version, sizeof(w->opened.base_vmm));
	return 0;
}

/* The folder and its manifest, without which nothing of it is of use. */
static int open_base(struct files_work *w, struct manifest *ret, struct err *err)
{
	AUTO(auto_close) int folder = files_work_template(w, err);
	int rc;

	if (folder < 0)
		return -1;
	rc = template_manifest_read(folder, ret, err);
	if (rc == 0 && strcmp(ret->template_id, w->order.template_id) != 0)
		rc = err_set(err, ERR_MISMATCH, 0, "its manifest is of template %s",
			     ret->template_id);
	if (rc == 0)
		return take_fd(&folder);
	if (err->sys == ENOENT || err->code == ERR_MISMATCH) {
		w->opened.base = FILES_BASE_READ;
		w->opened.base_bad = UINT32_MAX;
	}
	return cannot(w, err);
}

static int compare_sums(const struct files_work *w, const struct manifest *m, uint64_t sums,
			uint32_t need, struct err *err)
{
	uint64_t here = manifest_sums(m);
	bool memory = !(need & FILES_NEED_MEMORY) || sums_memory(sums) == sums_memory(here);

	if (sums == 0 || (memory && sums_disk(sums) == sums_disk(here)))
		return 0;
	return err_set(err, ERR_BASE_LOST, 0,
		       "template %s is another than it differs from: memory and disk have CRC "
		       "%08x and %08x, not %08x and %08x",
		       w->order.template_id, sums_memory(here), sums_disk(here), sums_memory(sums),
		       sums_disk(sums));
}

static int check_needed(const struct files_work *w, uint32_t need, struct err *err)
{
	bool read = w->opened.base == FILES_BASE_READ;
	uint32_t bad = need & (read ? w->opened.base_bad : w->order.base_bad);

	if (bad == 0)
		return 0;
	return err_set(err, ERR_BASE_LOST, 0,
		       "template %s, which it differs from, is damaged: its %s is not what its "
		       "manifest says",
		       w->order.template_id,
		       manifest_file_name((enum manifest_file)__builtin_ctz(bad)));
}

int files_base_check(struct files_work *w, uint64_t sums, uint32_t need, struct err *err)
{
	AUTO(auto_close) int folder = -1;
	struct manifest m;

	folder = open_base(w, &m, err);
	if (folder < 0 || compare_sums(w, &m, sums, need, err) < 0 ||
	    (w->order.read_base && read_files(w, folder, &m, err) < 0) ||
	    check_needed(w, need, err) < 0)
		return -1;
	if (w->opened.base_sums == 0)
		w->opened.base_sums = manifest_sums(&m);
	return 0;
}

int files_base_read(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = -1;
	struct manifest m;

	folder = open_base(w, &m, err);
	return folder < 0 ? -1 : read_files(w, folder, &m, err);
}
