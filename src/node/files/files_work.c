/* files_work.c - what is done with a sandbox's files. All names are ours; no file is trusted. */
/* #syscalls: mkdirat openat openat2 fcntl fstat fstatfs statfs newfstatat fsync fdatasync pread64
 *	renameat renameat2 unlinkat ftruncate fchmod lseek getdents64 close */
#include "node/files/files_work.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/folder.h"
#include "base/log.h"
#include "copier/protocol.h"
#include "node/files/files_base.h"
#include "node/files/files_disk.h"
#include "node/files/host_text.h"
#include "node/files/lost.h"
#include "node/files/lost_disks.h"
#include "node/files/snapshot_cache.h"
#include "node/files/snapshot_work.h"
#include "node/journal/row_file.h"
#include "vm/checksum.h"
#include "vm/overlay_file.h"
#include "vm/template_job.h"

enum { MIB = 1024 * 1024 };

int files_work_room(int root, uint64_t needed_mib, struct err *err)
{
	struct statvfs v;
	uint64_t free_mib;

	if (fstatvfs(root, &v) < 0)
		return err_set(err, ERR_INTERNAL, errno, "how much room there is on disk");
	free_mib = (uint64_t)v.f_bavail * v.f_frsize / MIB;
	if (free_mib < needed_mib)
		return err_set(err, ERR_NO_SPACE, 0,
			       "the host's disk is full: %ju MiB are free, %ju are needed",
			       (uintmax_t)free_mib, (uintmax_t)needed_mib);
	return 0;
}

static int open_folder(const struct files_work *w, struct err *err)
{
	return folder_open(w->root, w->order.id, O_RDONLY | O_DIRECTORY, 0, err);
}

static int drop(int folder, const char *name, struct err *err)
{
	if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
		return err_set(err, ERR_INTERNAL, errno, "remove %s", name);
	return 0;
}

static int take_name(int folder, const char *from, const char *to, struct err *err)
{
	if (renameat(folder, from, folder, to) < 0)
		return err_set(err, ERR_INTERNAL, errno, "rename %s", from);
	return 0;
}

/* --- a memory of zeros -------------------------------------------------------------------- */

/* It has a name as long as its sandbox is there: warden opens it again by that. */
static int make_blank(int folder, uint64_t bytes, struct err *err)
{
	AUTO(auto_close) int fd = -1;

	if (drop(folder, FILES_BLANK, err) < 0)
		return -1;
	fd = folder_open(folder, FILES_BLANK, O_RDWR | O_CREAT | O_EXCL, 0444, err);
	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)bytes) < 0 || fchmod(fd, 0444) < 0) /* its VM's uid reads it */
		return err_set(err, ERR_INTERNAL, errno, "make a file of zeros");
	return 0;
}

static bool is_sized(int fd, uint64_t bytes)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == bytes;
}

int files_work_blank(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = open_folder(w, err);
	uint64_t bytes = (uint64_t)w->order.blank_mib * MIB;
	struct files_opened *o = &w->opened;

	if (folder < 0)
		return -1;
	o->memory = folder_open(folder, FILES_BLANK, O_RDONLY, 0, err);
	if (!is_sized(o->memory, bytes)) {
		if (o->memory >= 0)
			close(take_fd(&o->memory));
		if (make_blank(folder, bytes, err) < 0)
			return -1;
		o->memory = folder_open(folder, FILES_BLANK, O_RDONLY, 0, err);
	}
	return o->memory < 0 ? -1 : 0;
}

/* Nobody loads a state: what boots is given something in its place, for those after it. */
static int blank_to_boot(struct files_work *w, struct err *err)
{
	if (files_work_blank(w, err) < 0)
		return -1;
	w->opened.state = fcntl(w->opened.memory, F_DUPFD_CLOEXEC, 0);
	return w->opened.state < 0 ? err_set(err, ERR_EXHAUSTED, errno, "a descriptor") : 0;
}

/* --- the verbs ---------------------------------------------------------------------------- */

/* The template `base` was read when it was found; of others it may be the first use. */
static int check_new(struct files_work *w, struct err *err)
{
	uint32_t need = w->order.memory ? FILES_NEED_MEMORY : FILES_NEED_KERNEL;

	if (!w->order.blank_mib && !w->order.read_base && !w->order.base_bad)
		return 0;
	return files_base_check(w, w->order.base_sums, FILES_NEED_DISK | need, err);
}

static int make(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int template = -1;
	AUTO(auto_close) int folder = -1;

	if (lost_disks_room(w->root, w->reserve_mib, 0, err) < 0)
		return -1;
	template = files_work_template(w, err);
	if (template <0)
		return -1;
	folder = folder_make(w->root, w->order.id, 0700, err);
	if (folder < 0)
		return -1;
	w->opened.disk = overlay_file_make(template, folder, "disk", err);
	if (w->opened.disk < 0)
		return -1;
	if ((w->order.snapshot_id[0] ? snapshot_work_open(w, true, err) : check_new(w, err)) < 0)
		return -1;
	return w->order.blank_mib ? blank_to_boot(w, err) : 0;
}

/* What its own was mapped from. */
static int open_memory(struct files_work *w, bool check, struct err *err)
{
	AUTO(auto_close) int template = -1;

	if (w->order.snapshot_id[0]) {
		if (snapshot_work_open(w, false, err) < 0)
			return -1;
		return w->order.blank_mib ? files_work_blank(w, err) : 0;
	}
	template = files_work_template(w, err);
	if (template <0 || (check && files_work_check_host(w, template, err) < 0))
		return -1;
	if (w->order.blank_mib)
		return files_work_blank(w, err);
	w->opened.memory = folder_open(template, "memory", O_RDONLY, 0, err);
	return w->opened.memory < 0 ? -1 : 0;
}

int files_work_mark(const struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = open_folder(w, err);
	AUTO(auto_close) int mark = -1;

	if (folder < 0)
		return -1;
	mark = folder_open(folder, FILES_MARK, O_WRONLY | O_CREAT, 0600, err);
	return mark < 0 ? -1 : 0;
}

static int save(struct files_work *w, struct err *err)
{
	const int flags = O_RDWR | O_CREAT | O_TRUNC;
	AUTO(auto_close) int folder = open_folder(w, err);
	struct files_opened *o = &w->opened;

	if (folder < 0 || lost_disks_room(w->root, w->reserve_mib, w->order.need_mib, err) < 0)
		return -1;
	if (files_work_mark(w, err) < 0)
		return -1;
	if (!w->order.memory)
		return 0;
	if (open_memory(w, false, err) < 0)
		return -1;
	o->pages = folder_open(folder, "pages.new", flags, 0600, err);
	if (o->pages < 0)
		return -1;
	o->state = folder_open(folder, "state.new", flags, 0600, err);
	return o->state < 0 ? -1 : 0;
}

/* All but what a copier syncs itself. The folders above were never synced: a sandbox that runs does
 * not survive a power cut, one that is paused does. */
static int keep(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = open_folder(w, err);
	AUTO(auto_close) int above = openat(w->root, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(auto_close) int disk = folder < 0 ? -1 : folder_open(folder, "disk", O_RDWR, 0, err);

	if (disk < 0)
		return -1;
	if (fdatasync(disk) < 0)
		return err_set(err, ERR_INTERNAL, errno, "sync its disk");
	if (files_disk_sum(disk, &w->opened.disk_crc, err) < 0)
		return -1;
	if (w->order.memory && (take_name(folder, "pages.new", "pages", err) < 0 ||
				take_name(folder, "state.new", "state", err) < 0))
		return -1;
	if (drop(folder, FILES_MARK, err) < 0) /* it stands still: that says enough */
		return -1;
	if (fsync(folder) < 0 || fsync(w->root) < 0 || above < 0 || fsync(above) < 0)
		return err_set(err, ERR_INTERNAL, errno, "sync a folder");
	return 0;
}

int files_work_sum(int fd, struct checksum *ret, struct err *err)
{
	const atomic_bool never = false;

	if (checksum_file(fd, &never, ret, err) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0) /* QEMU reads on from where it stands */
		return err_set(err, ERR_INTERNAL, errno, "rewind a file");
	return 0;
}

int files_work_crc(int fd, uint32_t *ret, struct err *err)
{
	struct checksum got;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at the device state");
	if (st.st_size > COPIER_STATE_MAX)
		return err_set(err, ERR_INVALID, 0, "the device state is too large");
	if (files_work_sum(fd, &got, err) < 0)
		return err_wrap(err, "the device state");
	*ret = got.crc;
	return 0;
}

int files_work_compare(int fd, const struct checksum *want, const char *name, bool whole,
		       struct err *err)
{
	struct checksum got;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "look at %s", name);
	if ((uint64_t)st.st_size != want->length)
		return err_set(err, ERR_INTERNAL, 0, "%s is not as long as its manifest says",
			       name);
	if (!whole)
		return 0;
	if (files_work_sum(fd, &got, err) < 0)
		return err_wrap(err, "%s", name);
	if (!checksum_eq(&got, want))
		return err_set(err, ERR_INTERNAL, 0, "%s is damaged: CRC %08x, not %08x", name,
			       got.crc, want->crc);
	return 0;
}

/* Device state loaded by another QEMU or on another processor is undefined inside the guest. */
int files_work_check_host(const struct files_work *w, int folder, struct err *err)
{
	enum manifest_reason reason = MANIFEST_OK;
	struct manifest m;

	if (template_manifest_read(folder, &m, err) < 0)
		return -1;
	if (w->order.booted)
		host_copy(&m.made_with, &w->order.host);
	if (manifest_check(&m, &w->order.here, &reason, err) < 0)
		return err_wrap(err, "its memory was saved elsewhere; "
				     "\"memory\": false boots from its disk");
	return 0;
}

/* A journal of before knows an earlier pause. */
static int check_generation(const struct files_work *w, int folder, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_SECRET(ROW_FILE_MAX + 1);
	struct journal_row row;
	struct err ignored;
	uint32_t saved;

	if (row_file_read(folder, &text, &ignored) < 0 ||
	    row_get(buf_view(&text), &row, &ignored) < 0)
		return 0; /* its sums tell what it is worth */
	saved = row.sandbox.generation;
	row_done(&row);
	if (saved == w->order.generation)
		return 0;
	return err_set(err, ERR_INTERNAL, 0,
		       "the journal is older than what was saved: pause %u of it, not %u. Move the "
		       "journal away and run hotcell-node --rebuild",
		       saved, w->order.generation);
}

/* Of one made of a snapshot, that is compared, and what is below it. */
static int check_base(struct files_work *w, struct err *err)
{
	uint32_t memory = w->order.blank_mib ? 0 : FILES_NEED_MEMORY;
	uint32_t need = w->order.memory ? memory : FILES_NEED_KERNEL;

	return w->order.snapshot_id[0]
		       ? 0
		       : files_base_check(w, w->order.base_sums, FILES_NEED_DISK | need, err);
}

static int load_memory(struct files_work *w, int folder, struct err *err)
{
	struct files_opened *o = &w->opened;
	uint32_t crc;

	if (check_generation(w, folder, err) < 0 || check_base(w, err) < 0 ||
	    open_memory(w, true, err) < 0)
		return -1;
	o->pages = folder_open(folder, "pages", O_RDONLY, 0, err);
	if (o->pages < 0)
		return -1;
	o->state = folder_open(folder, "state", O_RDONLY, 0, err);
	if (o->state < 0 || files_work_crc(o->state, &crc, err) < 0)
		return -1;
	if (crc != w->order.state_crc)
		return err_set(err, ERR_INTERNAL, 0,
			       "the saved device state is damaged: CRC %08x, not %08x", crc,
			       w->order.state_crc);
	return 0;
}

static int load(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = open_folder(w, err);

	if (folder >= 0)
		w->opened.disk = folder_open(folder, "disk", O_RDWR, 0, err);
	if (w->opened.disk < 0 && err->sys == ENOENT)
		return err_set(err, ERR_NO_FILES, ENOENT,
			       "the files of sandbox %s are not there: is the folder sandboxes of "
			       "node's data_dir mounted?",
			       w->order.id);
	if (w->opened.disk < 0)
		return -1;
	if (w->order.memory)
		return load_memory(w, folder, err);
	/* it is read before QEMU opens it: one that boots may repair what it finds, at once */
	if (check_generation(w, folder, err) < 0 ||
	    files_disk_check(w->opened.disk, w->order.disk_crc, err) < 0)
		return -1;
	/* it boots on the same layers */
	if ((w->order.snapshot_id[0] ? snapshot_work_open(w, true, err) : check_base(w, err)) < 0)
		return -1;
	return w->order.blank_mib ? blank_to_boot(w, err) : 0;
}

/* 1, 0, or -1: it cannot be told now. */
static int is_saved(const struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = open_folder(w, err);
	int there;

	if (folder < 0)
		return err->sys == ENOENT || err->sys == ENOTDIR ? 0 : -1;
	if (row_file_is_deleted(folder))
		return 0;
	there = row_has_file(folder, ROW_FILE, NULL, err);
	return there < 0 && err->code == ERR_INVALID ? 1 : there; /* no file: nothing of ours */
}

static int tidy(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = open_folder(w, err);
	bool runs = w->order.verb == FILES_RUNS;

	/* the description first: by it the rest would be believed */
	if (folder < 0 || (runs && row_file_drop(w->root, w->order.id, false, err) < 0))
		return -1;
	if (drop(folder, "pages.new", err) < 0 || drop(folder, "state.new", err) < 0 ||
	    drop(folder, FILES_MARK, err) < 0)
		return -1;
	if (runs && (drop(folder, "pages", err) < 0 || drop(folder, "state", err) < 0))
		return -1;
	return 0;
}

/* Its row knew nothing of a pause that its folder tells of: a journal of before. */
static int set_aside(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int lost = lost_open(w->root, err);

	if (lost < 0 ||
	    lost_move(w->root, w->order.id, LOST_SANDBOX, lost, clock_wall_ns(), err) < 0)
		return -1;
	log_warn("%s is lost and was saved: it is in lost/ for a week", w->order.id);
	w->opened.set_aside = true;
	return 0;
}

/* Its row came along, so it lost its VM. *ret: its folder is dealt with. */
static int keep_disk(struct files_work *w, bool *ret, struct err *err)
{
	const char *id = w->order.id;

	*ret = lost_disk_keep(w->root, id, bytes_str(w->order.row), w->reserve_mib, err) == 0;
	if (*ret) {
		log_warn("%s lost its VM: its disk is in lost/ for a day", id);
		return 0;
	}
	if (err->code != ERR_NO_SPACE && err->code != ERR_NO_FILES && err->code != ERR_NOT_FOUND)
		return -1;
	log_warn("%s lost its VM and its disk is not kept: %s", id, err->msg);
	return 0;
}

static int remove_all(struct files_work *w, struct err *err)
{
	const struct files_order *o = &w->order;
	int saved = o->lost ? is_saved(w, err) : 0;
	bool kept = false;

	if (saved < 0)
		return -1;
	if (saved && !(o->row && lost_disk_is_described(w->root, o->id))) {
		if (set_aside(w, err) < 0) /* the next start tries again */
			log_error("%s stays where it is: %s", o->id, err->msg);
		return 0;
	}
	if (o->row && keep_disk(w, &kept, err) < 0)
		return -1;
	if (kept)
		return 0;
	files_hold(&w->held, w->root, o->id);
	return folder_remove(w->root, o->id, err);
}

/* --- one job ------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	int (*run)(struct files_work *w, struct err *err);
} verbs[] = {
	[FILES_MAKE] = { "make its folder", make },
	[FILES_SAVE] = { "open files to save it", save },
	[FILES_KEEP] = { "keep what was saved", keep },
	[FILES_LOAD] = { "open what was saved", load },
	[FILES_RUNS] = { "drop what was saved", tidy },
	[FILES_PAUSED] = { "drop a save", tidy },
	[FILES_REMOVE] = { "remove its folder", remove_all },
	[FILES_SNAP_OPEN] = { "open files to copy it", snapshot_work_do },
	[FILES_SNAP_JOIN] = { "make a snapshot", snapshot_work_do },
	[FILES_SNAP_KEEP] = { "keep a snapshot", snapshot_work_do },
	[FILES_SNAP_DROP] = { "remove a snapshot", snapshot_work_do },
	[FILES_SNAP_PAUSED] = { "copy what was saved of it", snapshot_work_do },
	[FILES_SNAP_WARM] = { "read a snapshot's memory ahead", snapshot_cache_warm },
	[FILES_SNAP_COOL] = { "let go of a snapshot", snapshot_cache_cool },
	[FILES_BASE_COOL] = { "let go of a template", template_cache_cool },
	[FILES_BASE] = { "read a template", files_base_read },
	[FILES_DISK] = { "read its disk", files_disk_read },
};

const char *files_verb_name(enum files_verb v)
{
	return verbs[v].name;
}

int files_work_do(struct files_work *w, struct err *err)
{
	int rc = verbs[w->order.verb].run(w, err);

	if (rc < 0 && (err->sys == ENOSPC || err->sys == EDQUOT))
		err->code = ERR_NO_SPACE;
	return rc;
}

void files_work_after(struct files_work *w)
{
	files_let_go(&w->held);
}

void files_work_make(struct files_work *w, const struct files_order *o, const char *state_dir,
		     uint64_t reserve_mib)
{
	*w = (struct files_work){ .order = *o,
				  .opened = FILES_NONE,
				  .root = -1,
				  .snapshots = -1,
				  .reserve_mib = reserve_mib };
	snprintf(w->state_dir, sizeof(w->state_dir), "%s", state_dir);
}

int files_work_open(struct files_work *w, int root, int snapshots, struct err *err)
{
	w->root = fcntl(root, F_DUPFD_CLOEXEC, 0);
	w->snapshots = fcntl(snapshots, F_DUPFD_CLOEXEC, 0);
	if (w->root < 0 || w->snapshots < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "a descriptor");
	return 0;
}

void files_work_done(struct files_work *w)
{
	if (w->order.row)
		explicit_bzero(w->order.row, strlen(w->order.row));
	free(TAKE(w->order.row));
	files_opened_close(&w->opened);
	auto_close(&w->root);
	auto_close(&w->snapshots);
	w->root = w->snapshots = -1;
}
