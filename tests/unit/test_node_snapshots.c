/* test_node_snapshots.c - the folder of a snapshot, its row, its names; a paused one's disk. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "base/folder.h"
#include "copier/pages.h"
#include "node/files/files_work.h"
#include "node/node.h"
#include "node/journal/row_file.h"
#include "vm/template_job.h"

enum { PAGES = 16, MEMORY = PAGES * PAGES_BYTES, TEMPLATE_CRC = 0x1234 /* as it says */ };

struct world {
	char base[64];
	int root, snapshots;
	char state_dir[96];
	const struct manifest_facts *booted; /* on what the source was; NULL: it was not */
};

static void path_of(const struct world *w, const char *name, char ret[static 256])
{
	snprintf(ret, 256, "%s/%s", w->base, name);
}

static void put(const struct world *w, const char *name, const void *data, size_t n)
{
	char path[256];
	int fd;

	path_of(w, name, path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, n), n);
	close(fd);
}

static void make_folder(const struct world *w, const char *name)
{
	char path[256];

	path_of(w, name, path);
	assert_int_equal(mkdir(path, 0755), 0);
}

static int open_folder(const struct world *w, const char *name)
{
	char path[256];
	int fd;

	path_of(w, name, path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static bool is_there(const struct world *w, const char *name)
{
	char path[256];

	path_of(w, name, path);
	return access(path, F_OK) == 0;
}

static const struct manifest_facts facts = {
	.vmm_version = "QEMU 10",
	.cpu_model = "some-cpu",
	.accel = "tcg",
	.arguments = "-machine microvm",
	.kernel_version = "6.1",
	.agent_version = "1",
	.vcpus = 1,
	.memory_mib = 128,
};

/* Every page of the template's memory is full of its number. */
static void put_manifest(const struct world *w, uint32_t disk_crc)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX);
	struct manifest m = { .template_id = "t", .created = "2026-01-01T00:00:00Z" };
	struct err err;

	m.made_with = facts;
	m.files[MANIFEST_DISK_FILE].crc = disk_crc;
	m.files[MANIFEST_MEMORY_FILE].crc = TEMPLATE_CRC;
	assert_int_equal(manifest_put(&m, &text, &err), 0);
	put(w, "state/templates/t/manifest", text.ptr, text.len);
}

static void put_template(const struct world *w)
{
	uint8_t memory[MEMORY];

	for (size_t i = 0; i < PAGES; i++)
		memset(memory + i * PAGES_BYTES, (int)i + 1, PAGES_BYTES);
	put_manifest(w, TEMPLATE_CRC);
	put(w, "state/templates/t/memory", memory, sizeof(memory));
	put(w, "state/templates/t/overlay", "empty", 5);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	snprintf(w->base, sizeof(w->base), "/tmp/hotcell-snapshots-XXXXXX");
	assert_non_null(mkdtemp(w->base));
	make_folder(w, "snapshots");
	make_folder(w, "sandboxes");
	make_folder(w, "sandboxes/box");
	make_folder(w, "state");
	make_folder(w, "state/templates");
	make_folder(w, "state/templates/t");
	put(w, "sandboxes/box/disk", "disk of box", 11);
	put_template(w);
	w->root = open_folder(w, "sandboxes");
	w->snapshots = open_folder(w, "snapshots");
	snprintf(w->state_dir, sizeof(w->state_dir), "%s/state", w->base);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	close(w->root);
	close(w->snapshots);
	assert_int_equal(folder_remove(tmp, w->base + strlen("/tmp/"), &err), 0);
	close(tmp);
	free(w);
	return 0;
}

/* --- jobs --------------------------------------------------------------------------------- */

static struct files_order order_of(enum files_verb verb, const char *into, const char *below,
				   uint32_t layer)
{
	struct files_order o = { .verb = verb, .memory = true, .layer = layer, .here = facts };

	snprintf(o.id, sizeof(o.id), "box");
	snprintf(o.template_id, sizeof(o.template_id), "t");
	snprintf(o.into, sizeof(o.into), "%s", into);
	snprintf(o.snapshot_id, sizeof(o.snapshot_id), "%s", below);
	return o;
}

static int run(const struct world *w, const struct files_order *o, struct files_work *ret,
	       struct err *err)
{
	files_work_make(ret, o, w->state_dir, 0);
	assert_int_equal(files_work_open(ret, w->root, w->snapshots, err), 0);
	return files_work_do(ret, err);
}

static int do_it(const struct world *w, const struct files_order *o, struct err *err)
{
	struct files_work work;
	int rc = run(w, o, &work, err);

	files_work_done(&work);
	return rc;
}

static void must(const struct world *w, const struct files_order *o)
{
	struct err err = { 0 };

	if (do_it(w, o, &err) < 0)
		fail_msg("%s: %s", files_verb_name(o->verb), err.msg);
}

/* --- pages -------------------------------------------------------------------------------- */

struct pages_file {
	struct pages_head head;
	uint8_t rest[PAGES_DATA_AT - sizeof(struct pages_head)];
	uint8_t data[3][PAGES_BYTES];
	struct pages_run runs[3];
};

/* Pages 2 and 3 are of 0xaa and 0xbb, pages 7 to 9 are zero. Page 2 was written while it was
 * copied: its first copy is of no use any more. */
static struct pages_file pages_make(void)
{
	struct pages_file f = { .head = { .memory_bytes = MEMORY,
					  .copies = 3,
					  .runs = 3,
					  .pages = 2,
					  .zero_pages = 3 },
				.runs = {
					{ 2, 1, 0, 2 }, { 3, 1, 0, 1 }, { 7, 3, PAGES_ZERO, 0 } } };

	memset(f.data[0], 0xee, PAGES_BYTES);
	memset(f.data[1], 0xbb, PAGES_BYTES);
	memset(f.data[2], 0xaa, PAGES_BYTES);
	f.head.data_crc = crc32c(0, (struct bytes){ f.data[0], sizeof(f.data) });
	f.head.runs_crc = crc32c(0, (struct bytes){ (const uint8_t *)f.runs, sizeof(f.runs) });
	pages_head_seal(&f.head);
	return f;
}

/* As QEMU would, into a file that is an empty disk. */
static void copy_disk(const struct world *w, int into)
{
	char path[256], text[16];
	ssize_t n;
	int fd;

	assert_int_equal(pread(into, text, sizeof(text), 0), 5);
	assert_memory_equal(text, "empty", 5);
	path_of(w, "sandboxes/box/disk", path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text));
	assert_true(n > 0);
	assert_int_equal(pwrite(into, text, (size_t)n, 0), n);
	close(fd);
}

/* As pause.c and a copier would. */
static void copy_into(const struct world *w, const char *into, const char *below, uint32_t layer,
		      const struct pages_file *f)
{
	struct files_order o = order_of(FILES_SNAP_OPEN, into, below, layer);
	struct files_work work;
	struct err err = { 0 };

	if (run(w, &o, &work, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(write(work.opened.pages, f, sizeof(*f)), sizeof(*f));
	assert_int_equal(write(work.opened.state, "state", 5), 5);
	assert_true(work.opened.memory >= 0);
	copy_disk(w, work.opened.disk);
	files_work_done(&work);
}

static void take(const struct world *w, const char *into, const char *below, uint32_t layer)
{
	struct pages_file f = pages_make();
	struct files_order o = order_of(FILES_SNAP_JOIN, into, below, layer);

	copy_into(w, into, below, layer, &f);
	o.booted = w->booted != NULL;
	if (w->booted)
		o.host = *w->booted;
	must(w, &o);
	o.verb = FILES_SNAP_KEEP;
	must(w, &o);
}

static void remove_box(const struct world *w)
{
	struct err err;

	assert_int_equal(folder_remove(w->root, "new", &err), 0);
}

/* As a create would; 0 or -1. */
static int open_of(const struct world *w, const char *snapshot, bool verify,
		   const struct manifest_facts *here, struct files_work *ret, struct err *err)
{
	struct files_order o = order_of(FILES_MAKE, "", snapshot, 0);

	snprintf(o.id, sizeof(o.id), "new");
	o.verify = verify;
	o.here = *here;
	return run(w, &o, ret, err);
}

/* --- the tests ---------------------------------------------------------------------------- */

static void one_memory_of_two(void **state)
{
	struct world *w = *state;
	uint8_t page[PAGES_BYTES];
	struct files_work got;
	struct err err = { 0 };
	char text[16] = "";
	struct stat st;

	take(w, "one", "", 1);
	assert_false(is_there(w, "snapshots/.new-one"));
	assert_false(is_there(w, "snapshots/one/pages"));
	if (open_of(w, "one", true, &facts, &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(fstat(got.opened.memory, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0444);
	assert_int_equal(st.st_size, MEMORY);
	for (int i = 0; i < PAGES; i++) {
		int want = i == 2 ? 0xaa : i == 3 ? 0xbb : i >= 7 && i <= 9 ? 0 : i + 1;

		assert_int_equal(pread(got.opened.memory, page, sizeof(page), i * PAGES_BYTES),
				 sizeof(page));
		assert_int_equal(page[0], want);
		assert_int_equal(page[PAGES_BYTES - 1], want);
	}
	/* from where it stands: QEMU does not rewind it */
	assert_int_equal(read(got.opened.state, text, sizeof(text)), 5);
	assert_string_equal(text, "state");
	assert_int_equal(got.opened.n_layers, 1);
	assert_int_equal(pread(got.opened.layers[0], text, sizeof(text), 0), 11);
	assert_memory_equal(text, "disk of box", 11);
	files_work_done(&got);
	remove_box(w);
}

static void each_stands_by_itself(void **state)
{
	struct world *w = *state;
	struct files_order o = order_of(FILES_SNAP_DROP, "one", "", 1);
	struct files_work got;
	struct err err = { 0 };

	take(w, "one", "", 1);
	put(w, "sandboxes/box/disk", "second disk", 11);
	take(w, "two", "one", 2);
	must(w, &o);
	assert_false(is_there(w, "snapshots/one"));
	if (open_of(w, "two", true, &facts, &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(got.opened.n_layers, 2);
	for (size_t i = 0; i < 2; i++) {
		char text[16] = "";

		assert_int_equal(pread(got.opened.layers[i], text, sizeof(text), 0), 11);
		assert_memory_equal(text, i ? "second disk" : "disk of box", 11);
	}
	files_work_done(&got);
	remove_box(w);
}

/* Replaces the file, which others may have, too. */
static void change(const struct world *w, const char *name, const char *text)
{
	char path[256];

	path_of(w, name, path);
	assert_int_equal(unlink(path), 0);
	put(w, name, text, strlen(text));
}

/* What a create of `three` is told; "": it is made. */
static struct err told_of_three(const struct world *w, bool verify)
{
	struct files_work got;
	struct err err = { 0 };

	if (open_of(w, "three", verify, &facts, &got, &err) == 0)
		err = (struct err){ 0 };
	files_work_done(&got);
	remove_box(w);
	return err;
}

static void take_three(const struct world *w)
{
	take(w, "one", "", 1);
	put(w, "sandboxes/box/disk", "second disk", 11);
	take(w, "two", "one", 2);
	put(w, "sandboxes/box/disk", "third disk.", 11);
	take(w, "three", "two", 3);
}

static void a_lower_layer_that_changed_is_refused(void **state)
{
	static const struct {
		const char *name, *whole;
	} rows[] = { { "layer1", "disk of box" }, { "layer2", "second disk" } };
	struct world *w = *state;

	take_three(w);
	assert_string_equal(told_of_three(w, true).msg, "");
	FOR_ROWS(row, rows) {
		char path[64];

		snprintf(path, sizeof(path), "snapshots/three/%s", row->name);
		change(w, path, "another one");
		assert_non_null(strstr(told_of_three(w, true).msg, row->name));
		assert_non_null(strstr(told_of_three(w, true).msg, "is damaged"));
		assert_string_equal(told_of_three(w, false).msg, ""); /* it is not read again */
		change(w, path, "a longer one");
		assert_non_null(strstr(told_of_three(w, false).msg, row->name));
		change(w, path, row->whole);
		assert_string_equal(told_of_three(w, true).msg, "");
	}
}

/* A manifest of before: no sums but that of the highest layer. */
static void forget_layers(const struct world *w, const char *id)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX + 1);
	char path[64];
	struct manifest m;
	struct err err;
	AUTO(auto_close)
	int folder = folder_open(w->snapshots, id, O_RDONLY | O_DIRECTORY, 0, &err);

	assert_int_equal(template_manifest_read(folder, &m, &err), 0);
	m.n_layers = 0;
	assert_int_equal(manifest_put(&m, &text, &err), 0);
	assert_int_equal(buf_add(&text, (struct bytes){ (const uint8_t *)"", 1 }, &err), 0);
	snprintf(path, sizeof(path), "snapshots/%s/manifest", id);
	change(w, path, (const char *)text.ptr);
}

static void one_of_before_is_opened_without_sums_of_its_layers(void **state)
{
	struct world *w = *state;

	take_three(w);
	forget_layers(w, "three");
	change(w, "snapshots/three/layer1", "another one");
	assert_string_equal(told_of_three(w, true).msg, "");
	/* and what is made of such a one knows what that knew: of its highest layer */
	forget_layers(w, "two");
	must(w, &(struct files_order){ .verb = FILES_SNAP_DROP, .id = "box", .into = "three" });
	take(w, "three", "two", 3);
	change(w, "snapshots/three/layer1", "another one");
	assert_string_equal(told_of_three(w, true).msg, "");
	change(w, "snapshots/three/layer2", "another one");
	assert_non_null(strstr(told_of_three(w, true).msg, "layer2 is damaged"));
}

static void of_a_paused_one(void **state)
{
	struct world *w = *state;
	struct files_order o = order_of(FILES_SNAP_PAUSED, "one", "", 1);
	const struct pages_file f = pages_make();
	struct files_work got;
	struct err err = { 0 };
	uint8_t byte;

	put(w, "sandboxes/box/pages", &f, sizeof(f));
	put(w, "sandboxes/box/state", "state", 5);
	o.state_crc = 1;
	assert_int_equal(do_it(w, &o, &err), -1);
	assert_non_null(strstr(err.msg, "damaged"));
	o.verb = FILES_SNAP_DROP;
	must(w, &o);
	o.verb = FILES_SNAP_PAUSED;
	o.state_crc = crc32c(0, BYTES_LIT("state"));
	o.disk_crc = 1; /* nor is a copy made of a disk that changed */
	assert_int_equal(do_it(w, &o, &err), -1);
	assert_non_null(strstr(err.msg, "the saved disk is damaged"));
	o.verb = FILES_SNAP_DROP;
	must(w, &o);
	o.verb = FILES_SNAP_PAUSED;
	o.disk_crc = crc32c(0, BYTES_LIT("disk of box"));
	must(w, &o);
	o.verb = FILES_SNAP_JOIN;
	must(w, &o);
	o.verb = FILES_SNAP_KEEP;
	must(w, &o);
	assert_true(is_there(w, "sandboxes/box/pages")); /* it is as it was */
	if (open_of(w, "one", true, &facts, &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(pread(got.opened.memory, &byte, 1, 3 * PAGES_BYTES), 1);
	assert_int_equal(byte, 0xbb);
	files_work_done(&got);
	remove_box(w);
}

/* Its lowest disk is the template's, and none but that one. */
static void of_another_template_it_is_refused(void **state)
{
	struct world *w = *state;
	struct files_order o = order_of(FILES_SNAP_OPEN, "two", "", 1);
	struct pages_file f = pages_make();
	struct files_work got;
	struct err err = { 0 };

	take(w, "one", "", 1);
	put_manifest(w, TEMPLATE_CRC + 1);
	assert_int_equal(open_of(w, "one", true, &facts, &got, &err), -1);
	assert_int_equal(err.code, ERR_BASE_LOST);
	files_work_done(&got);
	remove_box(w);
	assert_true(is_there(w, "snapshots/one/memory"));
	put_manifest(w, TEMPLATE_CRC);
	err = (struct err){ 0 };
	if (open_of(w, "one", true, &facts, &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(sums_disk(got.opened.base_sums), TEMPLATE_CRC);
	files_work_done(&got);
	remove_box(w);
	/* nor is one made of what differs from another */
	o.base_sums = (uint64_t)(TEMPLATE_CRC + 1) << 32 | TEMPLATE_CRC;
	assert_int_equal(do_it(w, &o, &err), -1);
	assert_int_equal(err.code, ERR_BASE_LOST);
	o.base_sums = (uint64_t)TEMPLATE_CRC << 32 | TEMPLATE_CRC;
	f.head.base_crc = TEMPLATE_CRC + 1;
	pages_head_seal(&f.head);
	copy_into(w, "two", "", 1, &f);
	o.verb = FILES_SNAP_JOIN;
	assert_int_equal(do_it(w, &o, &err), -1);
	assert_int_equal(err.code, ERR_BASE_LOST);
}

static void break_length(struct pages_file *f)
{
	f->head.pages = 1;
	f->head.zero_pages = 4;
	pages_head_seal(&f->head);
}

static void break_data(struct pages_file *f)
{
	f->data[1][7] ^= 1;
}

static void break_table(struct pages_file *f)
{
	f->runs[2].first = 8;
}

static void break_unused(struct pages_file *f)
{
	f->data[0][7] ^= 1;
}

static void break_copy(struct pages_file *f)
{
	f->runs[0].copy = f->runs[1].copy;
	f->head.runs_crc = crc32c(0, (struct bytes){ (const uint8_t *)f->runs, sizeof(f->runs) });
	pages_head_seal(&f->head);
}

static void break_order(struct pages_file *f)
{
	f->runs[2].first = PAGES - 1;
	f->head.runs_crc = crc32c(0, (struct bytes){ (const uint8_t *)f->runs, sizeof(f->runs) });
	pages_head_seal(&f->head);
}

static void break_size(struct pages_file *f)
{
	f->head.memory_bytes = 2 * MEMORY;
	pages_head_seal(&f->head);
}

static void pages_are_not_believed(void **state)
{
	static const struct {
		const char *name;
		void (*damage)(struct pages_file *f);
	} rows[] = {
		{ "another length", break_length },         { "a page changed", break_data },
		{ "the table changed", break_table },       { "beyond the memory", break_order },
		{ "of another machine", break_size },       { "a copy of two pages", break_copy },
		{ "an unused copy changed", break_unused },
	};
	struct world *w = *state;

	FOR_ROWS(row, rows) {
		struct files_order o = order_of(FILES_SNAP_JOIN, "bad", "", 1);
		struct pages_file f = pages_make();
		struct err err = { 0 };

		row->damage(&f);
		copy_into(w, "bad", "", 1, &f);
		assert_int_equal(do_it(w, &o, &err), -1);
		assert_true(err.msg[0]);
		o.verb = FILES_SNAP_DROP;
		must(w, &o);
		assert_false(is_there(w, "snapshots/.new-bad"));
	}
}

/* Whatever its memory was saved with. */
static void boots_from_its_disk(const struct world *w, const struct manifest_facts *here)
{
	struct files_order o = order_of(FILES_MAKE, "", "one", 0);
	struct files_work got;
	struct err err;

	snprintf(o.id, sizeof(o.id), "new");
	o.memory = false;
	o.here = *here;
	assert_int_equal(run(w, &o, &got, &err), 0);
	assert_int_equal(got.opened.n_layers, 1);
	files_work_done(&got);
	remove_box(w);
}

/* What was booted elsewhere and then kept says where. */
static void a_snapshot_knows_where_its_source_was_booted(void **state)
{
	struct world *w = *state;
	struct manifest_facts other = facts;
	struct files_work got;
	struct err err = { 0 };

	snprintf(other.vmm_version, sizeof(other.vmm_version), "QEMU of another year");
	w->booted = &other;
	take(w, "one", "", 1);
	w->booted = NULL;
	assert_int_equal(open_of(w, "one", false, &other, &got, &err), 0);
	files_work_done(&got);
	remove_box(w);
	assert_int_equal(open_of(w, "one", false, &facts, &got, &err), -1);
	assert_int_equal(err.code, ERR_MISMATCH);
	assert_non_null(strstr(err.msg, "vmm_version"));
	files_work_done(&got);
	remove_box(w);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct world *w = *state;
	struct manifest_facts other = facts;
	struct files_work got;
	struct err err = { 0 };
	char path[256];

	take(w, "one", "", 1);
	snprintf(other.cpu_model, sizeof(other.cpu_model), "another-cpu");
	assert_int_equal(open_of(w, "one", false, &other, &got, &err), -1);
	assert_int_equal(err.code, ERR_MISMATCH);
	assert_non_null(strstr(err.msg, "cpu_model"));
	files_work_done(&got);
	remove_box(w);
	boots_from_its_disk(w, &other);

	/* the same length, another content: only who reads all of it can know */
	path_of(w, "snapshots/one/memory", path);
	assert_int_equal(chmod(path, 0644), 0);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "!", 1, 5), 1);
	close(fd);
	assert_int_equal(open_of(w, "one", false, &facts, &got, &err), 0);
	files_work_done(&got);
	remove_box(w);
	assert_int_equal(open_of(w, "one", true, &facts, &got, &err), -1);
	assert_int_equal(err.code, ERR_INTERNAL);
	files_work_done(&got);
	remove_box(w);
	assert_int_equal(truncate(path, MEMORY - 1), 0);
	assert_int_equal(open_of(w, "one", false, &facts, &got, &err), -1);
	assert_int_equal(err.code, ERR_INTERNAL);
	files_work_done(&got);
	remove_box(w);
}

/* --- a disk alone, and a memory of zeros --------------------------------------------------- */

enum { BLANK_MIB = 1 };

static void take_step(const struct world *w, const char *into, const char *below, uint32_t layer)
{
	struct files_order o = order_of(FILES_SNAP_OPEN, into, below, layer);
	struct files_work work;
	struct err err = { 0 };

	o.memory = false;
	if (run(w, &o, &work, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(work.opened.pages < 0 && work.opened.state < 0 && work.opened.memory < 0);
	copy_disk(w, work.opened.disk);
	files_work_done(&work);
	o.verb = FILES_SNAP_JOIN;
	must(w, &o);
	o.verb = FILES_SNAP_KEEP;
	must(w, &o);
}

static struct files_order blank_order(const char *snapshot)
{
	struct files_order o = order_of(FILES_MAKE, "", snapshot, 0);

	snprintf(o.id, sizeof(o.id), "new");
	o.memory = false;
	o.blank_mib = BLANK_MIB;
	return o;
}

static void boots_with_zeros(const struct world *w, const char *snapshot, size_t layers)
{
	struct files_order o = blank_order(snapshot);
	uint8_t page[PAGES_BYTES], zeros[PAGES_BYTES] = { 0 };
	struct files_work got;
	struct err err = { 0 };
	struct stat st;

	if (run(w, &o, &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(got.opened.n_layers, layers);
	assert_true(got.opened.disk >= 0 && got.opened.state >= 0);
	assert_int_equal(fstat(got.opened.memory, &st), 0);
	assert_int_equal(st.st_size, BLANK_MIB << 20);
	assert_int_equal(st.st_mode & 0777, 0444);
	assert_int_equal(pread(got.opened.memory, page, sizeof(page), 0), sizeof(page));
	assert_memory_equal(page, zeros, sizeof(page));
	assert_true(is_there(w, "sandboxes/new/blank"));
	files_work_done(&got);
	remove_box(w);
}

static void a_step_has_no_memory_and_only_boots(void **state)
{
	struct world *w = *state;
	struct files_work got;
	struct err err = { 0 };
	struct manifest m;
	int folder;

	take_step(w, "one", "", 1);
	assert_false(is_there(w, "snapshots/one/memory"));
	assert_false(is_there(w, "snapshots/one/state"));
	folder = open_folder(w, "snapshots/one");
	assert_int_equal(template_manifest_read(folder, &m, &err), 0);
	close(folder);
	assert_true(manifest_is_disk(&m));
	assert_int_equal(open_of(w, "one", true, &facts, &got, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.msg, "only boots"));
	files_work_done(&got);
	remove_box(w);
	boots_with_zeros(w, "one", 1);
	put(w, "sandboxes/box/disk", "second disk", 11);
	take_step(w, "two", "one", 2);
	boots_with_zeros(w, "two", 2);
	boots_with_zeros(w, "", 0); /* of the template's own disk */
}

static void join_zeros(const struct world *w, const struct manifest_facts *host)
{
	struct files_order o = order_of(FILES_SNAP_OPEN, "zero", "", 1);
	struct pages_file f = pages_make();
	struct files_work work;
	struct err err = { 0 };

	f.head.memory_bytes = BLANK_MIB << 20;
	pages_head_seal(&f.head);
	o.blank_mib = BLANK_MIB;
	o.booted = true;
	o.host = *host;
	if (run(w, &o, &work, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(write(work.opened.pages, &f, sizeof(f)), sizeof(f));
	assert_int_equal(write(work.opened.state, "state", 5), 5);
	copy_disk(w, work.opened.disk);
	files_work_done(&work);
	o.verb = FILES_SNAP_JOIN;
	must(w, &o);
	o.verb = FILES_SNAP_KEEP;
	must(w, &o);
}

/* Of one that booted with a memory of its own size: its snapshot is of that size. */
static void pages_are_joined_with_zeros(void **state)
{
	struct world *w = *state;
	struct manifest_facts sized = facts;
	uint8_t page[PAGES_BYTES];
	struct files_work got;
	struct err err = { 0 };
	struct stat st;

	sized.vcpus = 3;
	sized.memory_mib = BLANK_MIB;
	join_zeros(w, &sized);
	assert_int_equal(open_of(w, "zero", true, &facts, &got, &err), -1);
	assert_int_equal(err.code, ERR_MISMATCH);
	assert_non_null(strstr(err.msg, "size: made with 3 vcpus"));
	files_work_done(&got);
	remove_box(w);
	if (open_of(w, "zero", true, &sized, &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(fstat(got.opened.memory, &st), 0);
	assert_int_equal(st.st_size, BLANK_MIB << 20);
	for (int i = 0; i < PAGES; i++) {
		int want = i == 2 ? 0xaa : i == 3 ? 0xbb : 0;

		assert_int_equal(pread(got.opened.memory, page, sizeof(page), i * PAGES_BYTES),
				 sizeof(page));
		assert_int_equal(page[0], want);
	}
	files_work_done(&got);
	remove_box(w);
}

/* What lies in its folder under that name and is not as long is made again. */
static void a_file_of_zeros_that_was_cut_off_is_made_again(void **state)
{
	struct world *w = *state;
	struct files_order o = order_of(FILES_SAVE, "", "", 0);
	struct files_work got;
	struct err err = { 0 };
	struct stat st;

	o.blank_mib = BLANK_MIB;
	put(w, "sandboxes/box/blank", "short", 5);
	if (run(w, &o, &got, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(fstat(got.opened.memory, &st), 0);
	assert_int_equal(st.st_size, BLANK_MIB << 20);
	files_work_done(&got);
}

static void facts_follow_the_sizes(void **state)
{
	static const struct warden_sizes asked = { .vcpus = 2, .memory_mib = 512 };
	struct warden_facts told = { .vmm_version = "v", .arguments = "-cpu x -smp 2 -m 512 -y 2" };
	struct manifest_facts f;

	(void)state;
	template_facts(&told, &asked, &f);
	assert_string_equal(f.arguments, told.arguments);
	template_facts_resize(&f, 16, 131072);
	assert_string_equal(f.arguments, "-cpu x -smp 16 -m 131072 -y 2");
	assert_int_equal(f.vcpus, 16);
	assert_int_equal(f.memory_mib, 131072);
	template_facts_resize(&f, 2, 512);
	assert_string_equal(f.arguments, told.arguments);
}

static void no_room(void **state)
{
	struct world *w = *state;
	struct files_order o = order_of(FILES_SNAP_OPEN, "one", "", 1);
	struct files_work work;
	struct err err = { 0 };

	files_work_make(&work, &o, w->state_dir, 1024 * 1024 * 1024);
	assert_int_equal(files_work_open(&work, w->root, w->snapshots, &err), 0);
	assert_int_equal(files_work_do(&work, &err), -1);
	assert_int_equal(err.code, ERR_NO_SPACE);
	files_work_done(&work);
	assert_false(is_there(w, "snapshots/.new-one"));
}

/* --- the disk of a paused sandbox --------------------------------------------------------- */

static struct err told_of_disk(const struct world *w, enum files_verb verb, uint32_t disk_crc)
{
	struct files_order o = order_of(verb, "", "", 0);
	struct err err = { 0 };

	o.memory = false;
	o.disk_crc = disk_crc;
	o.generation = 2;
	return do_it(w, &o, &err) < 0 ? err : (struct err){ 0 };
}

static void a_disk_that_changed_since_its_pause_is_refused(void **state)
{
	static const enum files_verb verbs[] = { FILES_LOAD, FILES_DISK };
	struct files_order keep = order_of(FILES_KEEP, "", "", 0);
	uint32_t sum = crc32c(0, BYTES_LIT("disk of box"));
	struct world *w = *state;
	struct files_work kept;
	struct err err;

	keep.memory = false;
	assert_int_equal(run(w, &keep, &kept, &err), 0);
	assert_int_equal(kept.opened.disk_crc, sum);
	files_work_done(&kept);
	for (size_t i = 0; i < COUNT(verbs); i++) {
		assert_string_equal(told_of_disk(w, verbs[i], sum).msg, "");
		change(w, "sandboxes/box/disk", "disk of boy");
		assert_non_null(strstr(told_of_disk(w, verbs[i], sum).msg, "disk is damaged"));
		assert_string_equal(told_of_disk(w, verbs[i], 0).msg, ""); /* of before: no sum */
		change(w, "sandboxes/box/disk", "disk of box, and more");
		assert_int_equal(told_of_disk(w, verbs[i], sum).code, ERR_INTERNAL);
		change(w, "sandboxes/box/disk", "disk of box");
	}
}

/* Then it is another disk, and not a damaged one. */
static void a_disk_of_another_pause_is_told_as_such(void **state)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX);
	struct journal_row row = { .state = JOURNAL_PAUSED,
				   .sandbox = { .id = "box", .generation = 3 } };
	struct world *w = *state;
	struct err err;

	assert_int_equal(row_put(&row, &text, &err), 0);
	put(w, "sandboxes/box/row", text.ptr, text.len);
	assert_non_null(strstr(told_of_disk(w, FILES_LOAD, 1).msg, "the journal is older"));
}

/* --- names -------------------------------------------------------------------------------- */

static struct snapshot *add(struct node *n, const char *id, const char *team, const char *name,
			    const char *tag)
{
	struct journal_snapshot row = { .created_ns = n->snapshots.n + 1 };
	struct snapshot *p;

	snprintf(row.id, sizeof(row.id), "%s", id);
	snprintf(row.team, sizeof(row.team), "%s", team);
	snprintf(row.name, sizeof(row.name), "%s", name);
	snprintf(row.tag, sizeof(row.tag), "%s", tag);
	p = snapshots_add(n, &row);
	assert_non_null(p);
	return p;
}

static void found_by_name_and_tag(void **state)
{
	static const struct {
		const char *name, *team, *tag, *want; /* want: its id, or part of the refusal */
		bool found;
	} rows[] = {
		{ "aaa", "t1", "", "aaa", true },
		{ "aaa", "t1", "default", "aaa", true },
		{ "aaa", "t1", "v9", "tag 'v9' does not exist for template 'aaa'", false },
		{ "aaa", "t2", "", "template 'aaa' not found", false },
		{ "aaa", "", "", "aaa", true },
		{ "work", "t1", "", "bbb", true },
		{ "work", "t1", "default", "bbb", true },
		{ "work", "t1", "v1", "ccc", true },
		{ "ccc", "t1", "v1", "ccc", true },
		{ "work", "t1", "v2", "tag 'v2' does not exist for template 'work'", false },
		{ "work", "t2", "", "ddd", true },
		{ "hid", "t1", "", "template 'hid' not found", false },
		{ "stp", "t1", "", "template 'stp' not found", false },
		{ "bld", "t1", "", "template 'bld' not found", false },
		{ "", "t1", "", "not found", false },
	};
	struct node *n = calloc(1, sizeof(*n));

	(void)state;
	assert_non_null(n);
	add(n, "aaa", "t1", "", "default");
	add(n, "bbb", "t1", "work", "default");
	add(n, "ccc", "t1", "work", "v1");
	add(n, "ddd", "t2", "work", "default");
	add(n, "hid", "t1", "", "default")->row.hidden = 1;
	add(n, "stp", "t1", "", "default")->row.kind = JOURNAL_STEP;
	add(n, "bld", "t1", "", "default")->row.kind = JOURNAL_BUILD;
	FOR_ROWS(row, rows) {
		struct err err = { 0 };
		struct snapshot *p = snapshots_find(n, row->team, row->name, row->tag, &err);

		assert_int_equal(p != NULL, row->found);
		if (p) {
			assert_string_equal(p->row.id, row->want);
			continue;
		}
		assert_int_equal(err.code, ERR_NOT_FOUND);
		assert_non_null(strstr(err.msg, row->want));
	}
	snapshots_close(n);
	assert_int_equal(n->snapshots.n, 0);
	free(n);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(one_memory_of_two),
		T(each_stands_by_itself),
		T(a_lower_layer_that_changed_is_refused),
		T(one_of_before_is_opened_without_sums_of_its_layers),
		T(of_a_paused_one),
		T(of_another_template_it_is_refused),
		T(pages_are_not_believed),
		T(what_does_not_fit_is_refused),
		T(a_snapshot_knows_where_its_source_was_booted),
		T(a_step_has_no_memory_and_only_boots),
		T(pages_are_joined_with_zeros),
		T(a_file_of_zeros_that_was_cut_off_is_made_again),
		cmocka_unit_test(facts_follow_the_sizes),
		T(no_room),
		T(a_disk_that_changed_since_its_pause_is_refused),
		T(a_disk_of_another_pause_is_told_as_such),
		cmocka_unit_test(found_by_name_and_tag),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
