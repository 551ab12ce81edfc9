/* snapshot_work.c - the folder of a snapshot: made, kept, opened. On a thread of its own. */
/* #syscalls: mkdirat openat openat2 fcntl fstat newfstatat fsync pread64 renameat renameat2
 *	unlinkat linkat ftruncate fchmod copy_file_range ioctl getdents64 close */
#include "node/files/snapshot_work.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/folder.h"
#include "node/files/files_base.h"
#include "node/files/files_disk.h"
#include "node/files/host_text.h"
#include "node/files/lost_disks.h"
#include "node/files/snapshot_join.h"
#include "vm/checksum.h"
#include "vm/overlay_file.h"
#include "vm/template_job.h"

enum { NAME_SIZE = NODE_ID_MAX + 16 };

static void new_name(const struct files_work *w, char ret[static NAME_SIZE])
{
	snprintf(ret, NAME_SIZE, ".new-%s", w->order.into);
}

static int open_new(const struct files_work *w, struct err *err)
{
	char name[NAME_SIZE];

	new_name(w, name);
	return folder_open(w->snapshots, name, O_RDONLY | O_DIRECTORY, 0, err);
}

static int open_below(const struct files_work *w, struct err *err)
{
	int fd = folder_open(w->snapshots, w->order.snapshot_id, O_RDONLY | O_DIRECTORY, 0, err);

	if (fd < 0 && err->sys == ENOENT)
		return err_set(err, ERR_NO_FILES, ENOENT,
			       "the files of snapshot %s are not there: were they set aside "
			       "(hotcell lost), is the folder snapshots of node's data_dir "
			       "mounted?",
			       w->order.snapshot_id);
	return fd < 0 ? err_wrap(err, "snapshot %s", w->order.snapshot_id) : fd;
}

static uint64_t allocated(int folder, const char *name)
{
	struct stat st;

	if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return (uint64_t)st.st_blocks * 512;
}

/* --- opened by those made of it ----------------------------------------------------------- */

/* From the lowest upwards, as many as there are. */
static int open_layers(struct files_work *w, int folder, struct err *err)
{
	struct files_opened *o = &w->opened;

	while (o->n_layers < WARDEN_LAYERS_MAX) {
		char name[NAME_SIZE];
		int fd;

		snprintf(name, sizeof(name), "layer%zu", o->n_layers + 1);
		fd = folder_open(folder, name, O_RDONLY, 0, err);
		if (fd < 0 && err->sys == ENOENT && o->n_layers > 0)
			return 0;
		if (fd < 0)
			return -1;
		o->layers[o->n_layers++] = fd;
	}
	return 0;
}

/* Those below the highest. One made before there were sums of them says nothing of them. */
static int check_layers(const struct files_work *w, const struct manifest *m, struct err *err)
{
	const struct files_opened *o = &w->opened;

	if (m->n_layers > 0 && m->n_layers != o->n_layers - 1)
		return err_set(err, ERR_INTERNAL, 0,
			       "its disk is damaged: it has %zu layers, not %zu", o->n_layers,
			       m->n_layers + 1);
	for (size_t i = 0; i < m->n_layers; i++) {
		char name[NAME_SIZE];

		snprintf(name, sizeof(name), "layer%zu", i + 1);
		if (m->layers[i].length > 0 &&
		    files_work_compare(o->layers[i], &m->layers[i], name, w->order.verify, err) < 0)
			return -1;
	}
	return 0;
}

static int check_files(const struct files_work *w, const struct manifest *m, struct err *err)
{
	const struct files_opened *o = &w->opened;
	bool all = w->order.verify;

	if (o->state >= 0 &&
	    files_work_compare(o->state, &m->files[MANIFEST_STATE_FILE], "state", true, err) < 0)
		return -1;
	if ((o->memory >= 0 && files_work_compare(o->memory, &m->files[MANIFEST_MEMORY_FILE],
						  "memory", all, err) < 0) ||
	    check_layers(w, m, err) < 0)
		return -1;
	return files_work_compare(o->layers[o->n_layers - 1], &m->files[MANIFEST_OVERLAY_FILE],
				  "its disk", all, err);
}

/* Is it the snapshot that the sandbox differs from? */
static int check_sums(struct files_work *w, const struct manifest *m, struct err *err)
{
	uint64_t sums = w->order.base_sums;

	w->opened.base_sums = manifest_sums(m);
	if (sums == 0 || sums == w->opened.base_sums)
		return 0;
	return err_set(
		err, ERR_BASE_LOST, 0,
		"it is another than was differed from: memory and lowest disk have CRC %016" PRIx64
		", not %016" PRIx64,
		w->opened.base_sums, sums);
}

/* Of one whose memory is of zeros, neither it nor the state is of use. */
static int open_memory(struct files_work *w, int folder, bool with_state, struct err *err)
{
	struct files_opened *o = &w->opened;

	if (w->order.blank_mib)
		return 0;
	o->memory = folder_open(folder, "memory", O_RDONLY, 0, err);
	if (o->memory < 0 && err->sys == ENOENT)
		return err_set(err, ERR_INVALID, ENOENT, "snapshot %s has no memory: it only boots",
			       w->order.snapshot_id);
	if (o->memory < 0 || !with_state)
		return o->memory < 0 ? -1 : 0;
	o->state = folder_open(folder, "state", O_RDONLY, 0, err);
	return o->state < 0 ? -1 : 0;
}

int snapshot_work_open(struct files_work *w, bool with_state, struct err *err)
{
	AUTO(auto_close) int folder = open_below(w, err);
	bool loads = w->order.verb == FILES_MAKE || w->order.verb == FILES_LOAD;
	struct manifest m;

	if (folder < 0 || open_memory(w, folder, with_state && loads, err) < 0)
		return -1;
	if (!loads)
		return 0;
	/* one that boots from its disk does not mind what the memory was saved with */
	if ((w->order.memory && files_work_check_host(w, folder, err) < 0) ||
	    template_manifest_read(folder, &m, err) < 0 || open_layers(w, folder, err) < 0 ||
	    check_sums(w, &m, err) < 0 || check_files(w, &m, err) < 0)
		return err_wrap(err, "snapshot %s", w->order.snapshot_id);
	/* its lowest disk is the template's; its memory is whole by itself */
	return files_base_check(w, manifest_sums(&m),
				FILES_NEED_DISK | (w->order.memory ? 0 : FILES_NEED_KERNEL), err);
}

/* --- made --------------------------------------------------------------------------------- */

/* The memory of what its source was made of. */
static int memory_below(struct files_work *w, struct err *err)
{
	AUTO(auto_close)
	int folder = w->order.snapshot_id[0] ? open_below(w, err) : files_work_template(w, err);

	return folder < 0 ? -1 : folder_open(folder, "memory", O_RDONLY, 0, err);
}

/* As if nothing could be shared: the memory below, what changed of it, and the disk as it is now.
 */
static int check_room(const struct files_work *w, int memory, struct err *err)
{
	AUTO(auto_close)
	int source = folder_open(w->root, w->order.id, O_RDONLY | O_DIRECTORY, 0, err);
	uint64_t bytes;
	struct stat st;

	if (source < 0)
		return -1;
	bytes = allocated(source, "disk");
	if (memory >= 0 && fstat(memory, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at the memory below");
	if (memory >= 0)
		bytes += (uint64_t)st.st_blocks * 512;
	return lost_disks_room(w->root, w->reserve_mib, w->order.need_mib + bytes / (1024 * 1024),
			       err);
}

/* A snapshot that is made of another one or of a template must be made of the right one. */
static int check_below(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int below = -1;
	bool memory = w->order.memory && !w->order.blank_mib;
	struct manifest m;

	if (!w->order.snapshot_id[0])
		return files_base_check(w, w->order.base_sums,
					FILES_NEED_DISK | (memory ? FILES_NEED_MEMORY : 0), err);
	below = open_below(w, err);
	if (below < 0 || template_manifest_read(below, &m, err) < 0 || check_sums(w, &m, err) < 0)
		return -1;
	return files_base_check(w, manifest_sums(&m), FILES_NEED_DISK, err);
}

static int open_source_memory(struct files_work *w, struct err *err)
{
	if (!w->order.memory)
		return 0;
	if (w->order.blank_mib)
		return files_work_blank(w, err);
	w->opened.memory = memory_below(w, err);
	return w->opened.memory < 0 ? -1 : 0;
}

/* Opens the memory below, too. */
static int make_folder(struct files_work *w, struct err *err)
{
	char name[NAME_SIZE];

	if (open_source_memory(w, err) < 0 || check_room(w, w->opened.memory, err) < 0 ||
	    check_below(w, err) < 0)
		return -1;
	new_name(w, name);
	return folder_make(w->snapshots, name, 0700, err);
}

/* For QEMU to copy the sandbox's into. */
static int make_disk(struct files_work *w, int folder, struct err *err)
{
	AUTO(auto_close) int template = files_work_template(w, err);
	char name[NAME_SIZE];

	if (template <0)
		return -1;
	snprintf(name, sizeof(name), "layer%u", w->order.layer);
	w->opened.disk = overlay_file_make(template, folder, name, err);
	return w->opened.disk < 0 ? -1 : 0;
}

static int make(struct files_work *w, struct err *err)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL;
	AUTO(auto_close) int folder = -1;
	struct files_opened *o = &w->opened;

	folder = make_folder(w, err);
	if (folder < 0 || files_work_mark(w, err) < 0)
		return -1;
	if (!w->order.memory)
		return make_disk(w, folder, err);
	o->pages = folder_open(folder, "pages", flags, 0600, err);
	if (o->pages < 0)
		return -1;
	o->state = folder_open(folder, "state", flags, 0600, err);
	return o->state < 0 ? -1 : make_disk(w, folder, err);
}

/* A file of the sandbox's, under a name of its own here. */
static int copy_one(const struct files_work *w, int folder, const char *from, const char *to,
		    struct err *err)
{
	AUTO(auto_close)
	int source = folder_open(w->root, w->order.id, O_RDONLY | O_DIRECTORY, 0, err);
	AUTO(auto_close) int old = source < 0 ? -1 : folder_open(source, from, O_RDONLY, 0, err);
	AUTO(auto_close) int new = -1;

	if (old < 0)
		return -1;
	new = folder_open(folder, to, O_RDWR | O_CREAT | O_EXCL, 0600, err);
	return new < 0 ? -1 : folder_copy(old, new, err);
}

static int copy_layer(const struct files_work *w, int folder, struct err *err)
{
	AUTO(auto_close) int fd = -1;
	char name[NAME_SIZE];

	snprintf(name, sizeof(name), "layer%u", w->order.layer);
	if (copy_one(w, folder, "disk", name, err) < 0)
		return -1;
	fd = folder_open(folder, name, O_RDONLY, 0, err);
	return fd < 0 ? -1 : files_disk_check(fd, w->order.disk_crc, err);
}

/* Nobody changes these files meanwhile: whatever comes next for this sandbox waits for this job. */
static int copy_paused(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = make_folder(w, err);
	AUTO(auto_close) int state = -1;
	uint32_t crc;

	if (folder < 0 || copy_one(w, folder, "pages", "pages", err) < 0 ||
	    copy_one(w, folder, "state", "state", err) < 0 || copy_layer(w, folder, err) < 0)
		return -1;
	state = folder_open(folder, "state", O_RDONLY, 0, err);
	if (state < 0 || files_work_crc(state, &crc, err) < 0)
		return -1;
	if (crc != w->order.state_crc)
		return err_set(err, ERR_INTERNAL, 0,
			       "the saved device state is damaged: CRC %08x, not %08x", crc,
			       w->order.state_crc);
	return 0;
}

/* --- layers, manifest --------------------------------------------------------------------- */

/* The same files, under a name of its own: whichever snapshot goes first, the other is whole. */
static int link_layers(const struct files_work *w, int folder, struct err *err)
{
	AUTO(auto_close) int below = -1;

	if (!w->order.snapshot_id[0])
		return 0;
	below = open_below(w, err);
	if (below < 0)
		return -1;
	for (uint32_t i = 1; i < w->order.layer; i++) {
		char name[NAME_SIZE];

		snprintf(name, sizeof(name), "layer%u", i);
		if (linkat(below, name, folder, name, 0) < 0)
			return err_set(err, ERR_INTERNAL, errno, "link %s", name);
	}
	return 0;
}

/* Nobody writes it any more, VMs read it. */
static int seal(int folder, const char *name, struct checksum *ret, struct err *err)
{
	static const atomic_bool never;
	AUTO(auto_close) int fd = folder_open(folder, name, O_RDONLY, 0, err);

	if (fd < 0)
		return -1;
	if (fchmod(fd, 0444) < 0 || fsync(fd) < 0)
		return err_set(err, ERR_INTERNAL, errno, "sync %s", name);
	return checksum_file(fd, &never, ret, err);
}

static int write_manifest(int folder, const struct manifest *m, struct err *err)
{
	AUTO(auto_close)
	int fd = folder_open(folder, "manifest", O_WRONLY | O_CREAT | O_EXCL, 0444, err);

	return fd < 0 ? -1 : template_manifest_write(fd, m, err);
}

/* Of those that are linked, what the one below says: they are not read again. */
static int describe_layers(const struct files_work *w, struct manifest *m, struct err *err)
{
	static_assert((int)MANIFEST_LAYERS_MAX >= (int)WARDEN_LAYERS_MAX, "a layer without a sum");
	size_t n = w->order.layer - 1;

	if (n > MANIFEST_LAYERS_MAX)
		return err_set(err, ERR_INVALID, 0, "its disk has %zu layers", n + 1);
	if (m->n_layers + 1 != n) /* it knew none of its own, or all become one */
		memset(m->layers, 0, sizeof(m->layers));
	if (n > 0)
		m->layers[n - 1] = m->files[MANIFEST_OVERLAY_FILE];
	m->n_layers = n;
	return 0;
}

/* The manifest of the template or snapshot below, with the files of this one. What it was made with
 * is the same, unless the sandbox booted. */
static int describe(struct files_work *w, int folder, struct err *err)
{
	AUTO(auto_close)
	int below = w->order.snapshot_id[0] ? open_below(w, err) : files_work_template(w, err);
	char layer[NAME_SIZE];
	struct manifest m;

	if (below < 0 || template_manifest_read(below, &m, err) < 0)
		return -1;
	snprintf(layer, sizeof(layer), "layer%u", w->order.layer);
	snprintf(m.template_id, sizeof(m.template_id), "%s", w->order.into);
	if (w->order.booted)
		host_copy(&m.made_with, &w->order.host);
	if (w->order.booted && w->order.kernel.length > 0) {
		m.files[MANIFEST_KERNEL_FILE] = w->order.kernel;
		memcpy(m.made_with.kernel_version, w->order.host.kernel_version,
		       sizeof(m.made_with.kernel_version));
	}
	manifest_time(clock_wall_ns(), m.created);
	m.files[MANIFEST_MEMORY_FILE] = m.files[MANIFEST_STATE_FILE] = (struct checksum){ 0 };
	if (describe_layers(w, &m, err) < 0 ||
	    (w->order.memory && (seal(folder, "memory", &m.files[MANIFEST_MEMORY_FILE], err) < 0 ||
				 seal(folder, "state", &m.files[MANIFEST_STATE_FILE], err) < 0)) ||
	    seal(folder, layer, &m.files[MANIFEST_OVERLAY_FILE], err) < 0)
		return -1;
	w->opened.base_sums = manifest_sums(&m);
	return write_manifest(folder, &m, err);
}

static int join_memory(struct files_work *w, int folder, struct err *err)
{
	AUTO(auto_close) int below = -1;

	if (!w->order.memory)
		return 0;
	if (w->order.blank_mib)
		return snapshot_join_blank((uint64_t)w->order.blank_mib << 20, folder, err);
	below = memory_below(w, err);
	return below < 0 ? -1 : snapshot_join(below, sums_memory(w->order.base_sums), folder, err);
}

static int join_all(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = open_new(w, err);

	if (folder < 0 || join_memory(w, folder, err) < 0 || link_layers(w, folder, err) < 0 ||
	    describe(w, folder, err) < 0)
		return -1;
	return fsync(folder) < 0 ? err_set(err, ERR_INTERNAL, errno, "sync its folder") : 0;
}

/* --- kept, removed ------------------------------------------------------------------------ */

static int keep(struct files_work *w, struct err *err)
{
	AUTO(auto_close) int folder = open_new(w, err);
	AUTO(auto_close) int above = openat(w->snapshots, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_SIZE], layer[NAME_SIZE];

	if (folder < 0)
		return -1;
	new_name(w, name);
	snprintf(layer, sizeof(layer), "layer%u", w->order.layer);
	if (renameat(w->snapshots, name, w->snapshots, w->order.into) < 0)
		return err_set(err, ERR_INTERNAL, errno, "rename a snapshot");
	if (fsync(w->snapshots) < 0 || above < 0 || fsync(above) < 0)
		return err_set(err, ERR_INTERNAL, errno, "sync a folder");
	w->opened.memory_bytes = allocated(folder, "memory") + allocated(folder, "state");
	w->opened.disk_bytes = allocated(folder, layer);
	return 0;
}

static int drop(struct files_work *w, struct err *err)
{
	char name[NAME_SIZE];

	files_hold(&w->held, w->snapshots, w->order.into);
	new_name(w, name);
	if (folder_remove(w->snapshots, name, err) < 0)
		return -1;
	return folder_remove(w->snapshots, w->order.into, err);
}

int snapshot_work_do(struct files_work *w, struct err *err)
{
	static int (*const verbs[])(struct files_work *, struct err *) = {
		[FILES_SNAP_OPEN] = make,          [FILES_SNAP_JOIN] = join_all,
		[FILES_SNAP_KEEP] = keep,          [FILES_SNAP_DROP] = drop,
		[FILES_SNAP_PAUSED] = copy_paused,
	};

	return verbs[w->order.verb](w, err);
}
