/* test_node_files.c - the folder of a sandbox: made, saved into, loaded, removed. */
#include "tests/unit/check.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "base/folder.h"
#include "net/loop.h"
#include "node/files/files_work.h"
#include "node/files/lost.h"
#include "node/journal/row_file.h"
#include "node/files/sandbox_files.h"
#include "node/life/turns.h"

enum { TURNS_MAX = 10000, MANY = 40, DESCRIPTORS = 256, NO_ROOM_MIB = 1024 * 1024 * 1024 };
#define STATE "device state"

struct world {
	char base[64];
	struct loop *loop;
	struct files *files;
	int n_done;
	struct timer alive; /* the loop has something to wait for */
};

struct asked {
	struct files_call call;
	struct world *world;
	struct files_opened got;
	struct err err;
	int done; /* in which order */
};

static void on_done(struct files_call *c, struct files_opened *got, const struct err *err)
{
	struct asked *a = CONTAINER_OF(c, struct asked, call);

	a->got = *got;
	*got = FILES_NONE;
	if (err)
		a->err = *err;
	a->done = ++a->world->n_done;
}

static void on_alive(struct timer *t)
{
	(void)t;
}

static void path_of(const struct world *w, const char *name, char *ret, size_t size)
{
	snprintf(ret, size, "%s/%s", w->base, name);
}

static void put(const struct world *w, const char *name, const char *text)
{
	char path[256];
	int fd;

	path_of(w, name, path, sizeof(path));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static bool is_there(const struct world *w, const char *name)
{
	char path[256];

	path_of(w, name, path, sizeof(path));
	return access(path, F_OK) == 0;
}

static void make_folder(const struct world *w, const char *name)
{
	char path[256];

	path_of(w, name, path, sizeof(path));
	assert_int_equal(mkdir(path, 0755), 0);
}

static const struct manifest_facts home = { .vmm_version = "QEMU 10",
					    .cpu_model = "Haswell",
					    .accel = "tcg",
					    .arguments = "-smp 1",
					    .kernel_version = "6.12" };

static void put_manifest(const struct world *w)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MANIFEST_BYTES_MAX + 1);
	struct manifest m = { .template_id = "t", .made_with = home };
	struct err err;

	for (int i = 0; i < MANIFEST_FILES; i++) { /* each file holds what it is called */
		struct bytes text_of = bytes_str(manifest_file_name((enum manifest_file)i));

		m.files[i] = (struct checksum){ text_of.len, crc32c(0, text_of) };
	}
	m.made_with.vcpus = 1;
	m.made_with.memory_mib = 64;
	manifest_time(0, m.created);
	assert_int_equal(manifest_put(&m, &text, &err), 0);
	assert_int_equal(buf_add(&text, (struct bytes){ (const uint8_t *)"", 1 }, &err), 0);
	put(w, "state/templates/t/manifest", (const char *)text.ptr);
}

static void open_files(struct world *w, uint64_t reserve_mib)
{
	char data[256], state[256];
	struct err err = { 0 };

	path_of(w, "data", data, sizeof(data));
	path_of(w, "state", state, sizeof(state));
	if (files_open(w->loop, data, state, reserve_mib, &w->files, &err) < 0)
		fail_msg("%s", err.msg);
}

static int set_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct err err;

	assert_non_null(w);
	snprintf(w->base, sizeof(w->base), "/tmp/hotcell-files-XXXXXX");
	assert_non_null(mkdtemp(w->base));
	make_folder(w, "data");
	make_folder(w, "state");
	make_folder(w, "state/templates");
	make_folder(w, "state/templates/t");
	put(w, "state/templates/t/overlay", "empty qcow2"); /* not compared here */
	put(w, "state/templates/t/memory", "memory");
	put(w, "state/templates/t/kernel", "kernel");
	put(w, "state/templates/t/disk", "disk");
	put_manifest(w);
	assert_int_equal(loop_open(&w->loop, &err), 0);
	timer_init(&w->alive, w->loop, on_alive);
	timer_repeat(&w->alive, 5);
	open_files(w, 0);
	*state = w;
	return 0;
}

static int tear_down(void **state)
{
	struct world *w = *state;
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	files_close(w->files);
	timer_stop(&w->alive);
	loop_free(w->loop);
	assert_int_equal(folder_remove(tmp, w->base + strlen("/tmp/"), &err), 0);
	close(tmp);
	free(w);
	return 0;
}

static struct files_order order(enum files_verb verb, const char *id)
{
	struct files_order o = { .verb = verb, .memory = true };

	snprintf(o.id, sizeof(o.id), "%s", id);
	snprintf(o.template_id, sizeof(o.template_id), "t");
	return o;
}

static void ask(struct world *w, struct asked *a, const struct files_order *o)
{
	struct err err;

	*a = (struct asked){ .world = w };
	assert_int_equal(files_ask(w->files, &a->call, o, on_done, &err), 0);
}

static void wait_until(struct world *w, int n)
{
	for (int i = 0; i < TURNS_MAX && w->n_done < n; i++)
		assert_true(loop_turn(w->loop));
	assert_int_equal(w->n_done, n);
}

static enum err_code result(struct world *w, enum files_verb verb, const char *id,
			    struct files_opened *ret)
{
	struct files_order o = order(verb, id);
	struct asked a;

	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	if (ret)
		*ret = a.got;
	return a.err.code;
}

static void close_all(struct files_opened *o)
{
	auto_close(&o->disk);
	auto_close(&o->pages);
	auto_close(&o->memory);
	auto_close(&o->state);
}

static void made_and_removed(void **state)
{
	struct world *w = *state;
	struct files_opened got;
	char text[32] = "";

	assert_int_equal(result(w, FILES_MAKE, "i1", &got), ERR_NONE);
	assert_true(got.disk >= 0 && got.pages < 0 && got.memory < 0 && got.state < 0);
	assert_int_equal(pread(got.disk, text, sizeof(text) - 1, 0), strlen("empty qcow2"));
	assert_string_equal(text, "empty qcow2");
	assert_int_equal(fcntl(got.disk, F_GETFL) & O_ACCMODE, O_RDWR);
	close_all(&got);
	assert_int_equal(result(w, FILES_MAKE, "i1", NULL), ERR_EXISTS);
	assert_int_equal(result(w, FILES_REMOVE, "i1", NULL), ERR_NONE);
	assert_false(is_there(w, "data/sandboxes/i1"));
	assert_int_equal(result(w, FILES_REMOVE, "i1", NULL), ERR_NONE); /* again is fine */
}

/* The kernel frees the blocks of a file with its last descriptor. */
static size_t held_of_removed(const struct world *w)
{
	char link[64], to[256];
	size_t n = 0;

	for (int fd = 0; fd < DESCRIPTORS; fd++) {
		ssize_t len;

		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = readlink(link, to, sizeof(to) - 1);
		if (len < 0)
			continue;
		to[len] = '\0';
		n += strncmp(to, w->base, strlen(w->base)) == 0 && strstr(to, "(deleted)");
	}
	return n;
}

static void removed_by_name_with_its_blocks_to_come(void **state)
{
	struct files_order o = order(FILES_REMOVE, "i1");
	struct world *w = *state;
	struct files_work job;
	AUTO(auto_close) int root = -1;
	struct err err;
	char path[256];

	make_folder(w, "data/sandboxes/i1");
	put(w, "data/sandboxes/i1/disk", "large");
	put(w, "data/sandboxes/i1/pages", "large");
	path_of(w, "data/sandboxes", path, sizeof(path));
	root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	files_work_make(&job, &o, w->base, 0);
	assert_int_equal(files_work_open(&job, root, root, &err), 0);
	assert_int_equal(files_work_do(&job, &err), 0); /* whoever waits is told now */
	assert_false(is_there(w, "data/sandboxes/i1"));
	assert_int_equal(held_of_removed(w), 2);
	files_work_after(&job);
	assert_int_equal(held_of_removed(w), 0);
	files_work_done(&job);
}

static void blocks_of_many_are_freed_in_the_end(void **state)
{
	struct world *w = *state;
	struct asked a[MANY];
	char name[64];

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "data/sandboxes/i%d", i);
		make_folder(w, name);
		snprintf(name, sizeof(name), "data/sandboxes/i%d/disk", i);
		put(w, name, "large");
		snprintf(name, sizeof(name), "i%d", i);
		struct files_order o = order(FILES_REMOVE, name);

		ask(w, &a[i], &o);
	}
	wait_until(w, MANY);
	for (int i = 0; i < TURNS_MAX && held_of_removed(w) > 0; i++)
		assert_true(loop_turn(w->loop));
	assert_int_equal(held_of_removed(w), 0);
}

static void save_it(struct world *w, const char *id)
{
	struct files_opened got;

	assert_int_equal(result(w, FILES_SAVE, id, &got), ERR_NONE);
	assert_true(got.pages >= 0 && got.memory >= 0 && got.state >= 0 && got.disk < 0);
	assert_int_equal(write(got.pages, "pages", 5), 5);
	assert_int_equal(write(got.state, STATE, strlen(STATE)), strlen(STATE));
	close_all(&got);
}

static void what_was_saved_has_its_name_only_at_the_end(void **state)
{
	struct world *w = *state;
	struct files_opened got;

	assert_int_equal(result(w, FILES_MAKE, "i1", &got), ERR_NONE);
	close_all(&got);
	save_it(w, "i1");
	assert_true(is_there(w, "data/sandboxes/i1/pages.new"));
	assert_false(is_there(w, "data/sandboxes/i1/pages"));
	assert_int_equal(result(w, FILES_PAUSED, "i1", NULL), ERR_NONE);
	assert_false(is_there(w, "data/sandboxes/i1/pages.new"));
	assert_int_equal(result(w, FILES_KEEP, "i1", NULL), ERR_INTERNAL); /* nothing to keep */
	save_it(w, "i1");
	assert_int_equal(result(w, FILES_KEEP, "i1", NULL), ERR_NONE);
	assert_true(is_there(w, "data/sandboxes/i1/pages") &&
		    is_there(w, "data/sandboxes/i1/state"));
	assert_false(is_there(w, "data/sandboxes/i1/state.new"));
	assert_int_equal(result(w, FILES_PAUSED, "i1", NULL), ERR_NONE);
	assert_true(is_there(w, "data/sandboxes/i1/pages"));
	put(w, "data/sandboxes/i1/row", "row");
	assert_int_equal(result(w, FILES_RUNS, "i1", NULL), ERR_NONE);
	assert_false(is_there(w, "data/sandboxes/i1/pages") ||
		     is_there(w, "data/sandboxes/i1/row") ||
		     is_there(w, "data/sandboxes/i1/state"));
	assert_true(is_there(w, "data/sandboxes/i1/disk"));
}

static void a_load_without_memory_opens_the_disk_alone(void **state)
{
	struct files_order o = order(FILES_LOAD, "i1");
	struct world *w = *state;
	struct files_opened got;
	struct asked a;

	assert_int_equal(result(w, FILES_LOAD, "i1", NULL), ERR_NO_FILES);
	assert_int_equal(result(w, FILES_MAKE, "i1", &got), ERR_NONE);
	close_all(&got);
	o.memory = false;
	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	assert_int_equal(a.err.code, ERR_NONE);
	assert_true(a.got.disk >= 0 && a.got.pages < 0 && a.got.memory < 0);
	close_all(&a.got);
}

static enum err_code load_on(struct world *w, const struct manifest_facts *here,
			     const struct manifest_facts *booted, struct err *ret)
{
	struct files_order o = order(FILES_LOAD, "i1");
	struct asked a;

	o.state_crc = crc32c(0, bytes_str(STATE));
	o.here = *here;
	o.booted = booted != NULL;
	if (booted)
		o.host = *booted;
	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	close_all(&a.got);
	*ret = a.err;
	return a.err.code;
}

static void make_saved(struct world *w)
{
	struct files_opened got;

	assert_int_equal(result(w, FILES_MAKE, "i1", &got), ERR_NONE);
	close_all(&got);
	save_it(w, "i1");
	assert_int_equal(result(w, FILES_KEEP, "i1", NULL), ERR_NONE);
}

static void another_host_is_told_by_name(void **state)
{
	struct manifest_facts away = home;
	struct world *w = *state;
	struct err err;

	make_saved(w);
	assert_int_equal(load_on(w, &home, NULL, &err), ERR_NONE);
	snprintf(away.vmm_version, sizeof(away.vmm_version), "QEMU 11");
	assert_int_equal(load_on(w, &away, NULL, &err), ERR_MISMATCH);
	assert_non_null(strstr(err.msg, "vmm_version: made with \"10\", here \"11\""));
	assert_non_null(strstr(err.msg, "\"memory\": false"));
	away = home;
	snprintf(away.cpu_model, sizeof(away.cpu_model), "qemu64");
	assert_int_equal(load_on(w, &away, NULL, &err), ERR_MISMATCH);
	assert_non_null(strstr(err.msg, "cpu_model: made with \"Haswell\", here \"qemu64\""));
	/* it was booted there: what its template says is of no interest */
	assert_int_equal(load_on(w, &away, &away, &err), ERR_NONE);
	assert_int_equal(load_on(w, &home, &away, &err), ERR_MISMATCH);
	assert_true(is_there(w, "data/sandboxes/i1/pages"));
}

/* --- what it differs from ----------------------------------------------------------------- */

static uint64_t sums(const char *memory, const char *disk)
{
	return (uint64_t)crc32c(0, bytes_str(memory)) << 32 | crc32c(0, bytes_str(disk));
}

/* A load, with its memory or from its disk. */
static struct asked load_from(struct world *w, bool memory, uint64_t base_sums, bool read)
{
	struct files_order o = order(FILES_LOAD, "i1");
	struct asked a;

	o.state_crc = crc32c(0, bytes_str(STATE));
	o.here = home;
	o.memory = memory;
	o.base_sums = base_sums;
	o.read_base = read;
	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	close_all(&a.got);
	return a;
}

static void what_differs_from_another_template_is_refused(void **state)
{
	static const struct {
		const char *name, *memory, *disk;
		enum err_code goes_on, boots;
	} rows[] = {
		{ "the same", "memory", "disk", ERR_NONE, ERR_NONE },
		{ "another memory", "yromem", "disk", ERR_BASE_LOST, ERR_NONE },
		{ "another disk", "memory", "ksid", ERR_BASE_LOST, ERR_BASE_LOST },
	};
	struct world *w = *state;
	struct asked a;

	make_saved(w);
	FOR_ROWS(row, rows) {
		a = load_from(w, true, sums(row->memory, row->disk), false);
		assert_int_equal(a.err.code, row->goes_on);
		assert_true(a.err.code == ERR_NONE || strstr(a.err.msg, "is another"));
		a = load_from(w, false, sums(row->memory, row->disk), false);
		assert_int_equal(a.err.code, row->boots);
	}
	a = load_from(w, true, 0, false); /* of before: it is told, for the row */
	assert_int_equal(a.err.code, ERR_NONE);
	assert_int_equal(a.got.base_sums, sums("memory", "disk"));
	assert_true(is_there(w, "data/sandboxes/i1/pages") &&
		    is_there(w, "data/sandboxes/i1/disk"));
}

static void what_is_damaged_is_refused_to_whom_it_matters(void **state)
{
	static const struct {
		const char *name;
		enum manifest_file bad;
		enum err_code goes_on, boots;
	} rows[] = {
		{ "kernel", MANIFEST_KERNEL_FILE, ERR_NONE, ERR_BASE_LOST },
		{ "disk", MANIFEST_DISK_FILE, ERR_BASE_LOST, ERR_BASE_LOST },
		{ "memory", MANIFEST_MEMORY_FILE, ERR_BASE_LOST, ERR_NONE },
	};
	struct world *w = *state;

	make_saved(w);
	FOR_ROWS(row, rows) {
		char name[64];
		struct asked a;

		snprintf(name, sizeof(name), "state/templates/t/%s", row->name);
		put(w, name, "damage");
		for (int memory = 0; memory < 2; memory++) {
			a = load_from(w, memory, sums("memory", "disk"), true);
			assert_int_equal(a.err.code, memory ? row->goes_on : row->boots);
			assert_int_equal(a.got.base, FILES_BASE_READ);
			assert_int_equal(a.got.base_bad, 1u << row->bad);
			assert_true(a.err.code == ERR_NONE || strstr(a.err.msg, row->name));
		}
		put(w, name, row->name);
		a = load_from(w, true, sums("memory", "disk"), true);
		assert_int_equal(a.err.code, ERR_NONE);
		assert_int_equal(a.got.base_bad, 0);
	}
	put(w, "state/templates/t/overlay", "damage"); /* for new ones alone */
	assert_int_equal(load_from(w, true, sums("memory", "disk"), true).err.code, ERR_NONE);
}

static void what_cannot_be_read_now_is_not_lost(void **state)
{
	struct world *w = *state;
	char manifest[256], away[256];
	struct asked a;

	make_saved(w);
	path_of(w, "state/templates/t/manifest", manifest, sizeof(manifest));
	path_of(w, "state/templates/t/away", away, sizeof(away));
	assert_int_equal(rename(manifest, away), 0);
	a = load_from(w, true, 0, true);
	assert_int_equal(a.err.code, ERR_BASE_LOST);
	assert_int_equal(a.got.base, FILES_BASE_READ);
	assert_int_equal(symlink("manifest", manifest), 0); /* ELOOP: as EACCES or EIO */
	a = load_from(w, true, 0, true);
	assert_int_equal(a.err.code, ERR_UNAVAILABLE);
	assert_int_equal(a.got.base, FILES_BASE_UNREAD);
	assert_int_equal(rename(away, manifest), 0);
	assert_int_equal(load_from(w, true, 0, true).err.code, ERR_NONE);
	path_of(w, "state/templates/t", manifest, sizeof(manifest));
	path_of(w, "state/templates/u", away, sizeof(away));
	assert_int_equal(rename(manifest, away), 0);
	a = load_from(w, false, 0, true);
	assert_int_equal(a.err.code, ERR_BASE_LOST);
	assert_int_equal(a.got.base, FILES_BASE_ABSENT);
	assert_true(is_there(w, "data/sandboxes/i1/pages"));
}

static void the_jobs_of_one_are_done_in_order(void **state)
{
	struct world *w = *state;
	struct asked a[MANY];
	char id[16];

	for (int i = 0; i < MANY; i++) {
		struct files_order o;

		snprintf(id, sizeof(id), "i%d", i / 2);
		o = order(i % 2 ? FILES_REMOVE : FILES_MAKE, id);
		ask(w, &a[i], &o);
	}
	wait_until(w, MANY);
	for (int i = 0; i < MANY; i += 2) {
		assert_int_equal(a[i].err.code, ERR_NONE);
		assert_int_equal(a[i + 1].err.code, ERR_NONE);
		assert_true(a[i].done < a[i + 1].done);
		close_all(&a[i].got);
		snprintf(id, sizeof(id), "i%d", i / 2);
		assert_false(is_there(w, id));
	}
}

static void whoever_lost_interest_before_it_began_is_not_told(void **state)
{
	struct files_order o = order(FILES_MAKE, "i1"), load = order(FILES_LOAD, "i1");
	struct world *w = *state;
	struct asked a, b;

	ask(w, &a, &o);
	ask(w, &b, &load);
	files_cancel(&a.call);
	files_cancel(&a.call);
	wait_until(w, 1);
	assert_int_equal(a.done, 0);
	assert_int_equal(b.err.code, ERR_NO_FILES); /* it never was */
}

/* A thread that opens it waits there for whoever writes. One turn of the loop begins a job and may
 * tell of its end, too: what is under way, and stays so, needs something to wait for. */
static void hold_makes(struct world *w)
{
	char path[256];

	path_of(w, "state/templates/t/overlay", path, sizeof(path));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
}

static void let_a_make_go(struct world *w)
{
	char path[256];
	int fd;

	path_of(w, "state/templates/t/overlay", path, sizeof(path));
	fd = open(path, O_WRONLY | O_CLOEXEC); /* once the thread is there */
	assert_true(fd >= 0);
	close(fd);
}

static void whoever_lost_interest_meanwhile_is_not_told(void **state)
{
	struct files_order o = order(FILES_MAKE, "i1"), gone = order(FILES_REMOVE, "i1");
	struct world *w = *state;
	struct asked a, b;

	hold_makes(w);
	ask(w, &a, &o);
	ask(w, &b, &gone);
	for (int i = 0; i < TURNS_MAX && !is_there(w, "data/sandboxes/i1"); i++)
		assert_true(loop_turn(w->loop));
	assert_true(is_there(w, "data/sandboxes/i1"));
	files_cancel(&a.call);
	files_cancel(&a.call);
	assert_true(loop_turn(w->loop)); /* the other one waits for its end all the same */
	assert_int_equal(w->n_done, 0);
	let_a_make_go(w);
	wait_until(w, 1);
	assert_int_equal(a.done, 0);
	assert_int_equal(b.err.code, ERR_NONE);
	assert_false(is_there(w, "data/sandboxes/i1"));
}

static void a_full_disk_is_said_before_anything_is_made(void **state)
{
	struct world *w = *state;
	struct err err;

	files_close(w->files);
	open_files(w, NO_ROOM_MIB);
	assert_int_equal(result(w, FILES_MAKE, "i1", NULL), ERR_NO_SPACE);
	assert_false(is_there(w, "data/sandboxes/i1"));
	assert_int_equal(files_room(w->files, 0, &err), -1);
	assert_non_null(strstr(err.msg, "disk is full"));
	assert_non_null(strstr(err.msg, "data: "));
}

/* A journal of before said that it ran; it was paused since. */
static void what_was_saved_and_lost_is_set_aside(void **state)
{
	struct files_order o = order(FILES_REMOVE, "i1");
	struct world *w = *state;
	struct asked a;

	o.lost = true;
	make_folder(w, "data/sandboxes/i1");
	put(w, "data/sandboxes/i1/disk", "disk");
	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	assert_false(is_there(w, "data/sandboxes/i1") || is_there(w, "data/lost"));

	make_folder(w, "data/sandboxes/i1");
	put(w, "data/sandboxes/i1/row", "row");
	put(w, "data/sandboxes/i1/deleted", "");
	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	assert_false(is_there(w, "data/sandboxes/i1") || is_there(w, "data/lost"));

	make_folder(w, "data/sandboxes/i1");
	put(w, "data/sandboxes/i1/row", "row");
	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	assert_int_equal(a.err.code, ERR_NONE);
	assert_false(is_there(w, "data/sandboxes/i1"));
	assert_true(is_there(w, "data/lost"));

	make_folder(w, "data/sandboxes/i2");
	put(w, "data/sandboxes/i2/row", "row");
	o = order(FILES_REMOVE, "i2"); /* its owner wanted it */
	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	assert_false(is_there(w, "data/sandboxes/i2"));
}

/* How many of that kind are in lost/, after it was removed with its row. */
static size_t lost_with_row(struct world *w, const char *id, enum lost_kind kind)
{
	AUTO(buf_done) struct buf text = BUF_MAX(ROW_FILE_MAX + 1);
	struct journal_row row = { .state = JOURNAL_PAUSED, .sandbox.reason = NODE_LOST };
	struct files_order o = order(FILES_REMOVE, id);
	AUTO(auto_close) int lost = -1;
	struct lost_list all;
	struct asked a;
	struct err err;
	size_t n = 0;

	snprintf(row.sandbox.id, sizeof(row.sandbox.id), "%s", id);
	assert_int_equal(row_put(&row, &text, &err), 0);
	assert_int_equal(buf_add(&text, (struct bytes){ (const uint8_t *)"", 1 }, &err), 0);
	o.lost = true;
	o.row = (char *)text.ptr;
	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	assert_int_equal(a.err.code, ERR_NONE);
	lost = lost_open(files_root(w->files), &err);
	assert_int_equal(lost_list(lost, &all, &err), 0);
	for (size_t i = 0; i < all.n; i++)
		n += all.all[i].kind == kind;
	lost_list_done(&all);
	return n;
}

static void the_disk_of_one_that_lost_its_vm_is_kept(void **state)
{
	struct world *w = *state;

	make_saved(w); /* what was saved of its memory is older than its disk */
	assert_int_equal(lost_with_row(w, "i1", LOST_DISK), 1);
	assert_false(is_there(w, "data/sandboxes/i1"));
	make_saved(w); /* a journal of before: it was paused since. That stays, for a week */
	put(w, "data/sandboxes/i1/row", "row");
	assert_int_equal(lost_with_row(w, "i1", LOST_SANDBOX), 1);
	make_folder(w, "data/sandboxes/i2"); /* without a disk there is nothing to keep */
	assert_int_equal(lost_with_row(w, "i2", LOST_DISK), 1);
	assert_false(is_there(w, "data/sandboxes/i2"));
}

/* One that fits without it: node_lost_disks. */
static void a_disk_that_is_kept_stays_for_a_pause_that_needs_more(void **state)
{
	struct files_order o = order(FILES_SAVE, "i1");
	struct world *w = *state;
	struct asked a;

	make_saved(w);
	assert_int_equal(lost_with_row(w, "i1", LOST_DISK), 1);
	make_saved(w);
	o.need_mib = NO_ROOM_MIB;
	ask(w, &a, &o);
	wait_until(w, w->n_done + 1);
	assert_int_equal(a.err.code, ERR_NO_SPACE);
	assert_int_equal(lost_with_row(w, "none", LOST_DISK), 1);
}

/* --- turns -------------------------------------------------------------------------------- */

struct guest {
	struct turn turn;
	int *count, at; /* at: the how-manieth to have one */
};

static void on_turn(struct turn *t)
{
	struct guest *g = CONTAINER_OF(t, struct guest, turn);

	g->at = ++*g->count;
}

static void so_many_at_once_in_order(void **state)
{
	struct world *w = *state;
	struct guest g[5] = { 0 };
	struct turns turns;
	int count = 0;

	turns_open(&turns, w->loop, 2);
	for (size_t i = 0; i < COUNT(g); i++) {
		g[i].count = &count;
		turn_take(&turns, &g[i].turn, on_turn);
	}
	assert_int_equal(count, 0); /* from the loop only */
	while (count < 2)
		assert_true(loop_turn(w->loop));
	assert_true(g[0].at == 1 && g[1].at == 2 && turns.n_waiting == 3);
	turn_leave(&g[2].turn); /* gives up waiting */
	turn_leave(&g[2].turn);
	turn_leave(&g[1].turn);
	while (count < 3)
		assert_true(loop_turn(w->loop));
	assert_true(g[3].at == 3 && g[4].at == 0 && turns.n == 2);
	turn_leave(&g[0].turn);
	turn_leave(&g[3].turn);
	while (count < 4)
		assert_true(loop_turn(w->loop));
	turn_leave(&g[4].turn);
	assert_true(turns.n == 0 && turns.n_waiting == 0);
	turns_close(&turns);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		T(made_and_removed),
		T(removed_by_name_with_its_blocks_to_come),
		T(blocks_of_many_are_freed_in_the_end),
		T(what_was_saved_has_its_name_only_at_the_end),
		T(a_load_without_memory_opens_the_disk_alone),
		T(another_host_is_told_by_name),
		T(what_differs_from_another_template_is_refused),
		T(what_is_damaged_is_refused_to_whom_it_matters),
		T(what_cannot_be_read_now_is_not_lost),
		T(the_jobs_of_one_are_done_in_order),
		T(whoever_lost_interest_before_it_began_is_not_told),
		T(whoever_lost_interest_meanwhile_is_not_told),
		T(a_full_disk_is_said_before_anything_is_made),
		T(what_was_saved_and_lost_is_set_aside),
		T(the_disk_of_one_that_lost_its_vm_is_kept),
		T(a_disk_that_is_kept_stays_for_a_pause_that_needs_more),
		T(so_many_at_once_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
