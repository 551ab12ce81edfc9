/* test_copier.c - pages of a VM saved and put back; a child with a private mapping plays QEMU. */
#include "tests/unit/check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "copier/pages.h"
#include "copier/work.h"

enum { PAGES = 1024, BYTES = PAGES * PAGES_BYTES, STATE_BYTES = 70000 };

struct vm { /* a child */
	pid_t pid;
	int mem, maps, pagemap;
};

struct world {
	struct work w;
	int node; /* the other end of control */
};

static int make_file(void)
{
	int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("copier", MFD_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Page n of the template: n in every word, but for page 7, which is zero. */
static void fill(uint8_t *page, uint64_t n)
{
	for (size_t i = 0; i < PAGES_BYTES; i += sizeof(n))
		memcpy(page + i, &n, sizeof(n));
}

static int make_memory(uint64_t pages)
{
	AUTO(auto_free) uint8_t *all = malloc(pages * PAGES_BYTES);
	int fd = make_file();

	for (uint64_t i = 0; i < pages; i++)
		fill(all + i * PAGES_BYTES, i == 7 ? 0 : i + 1);
	assert_int_equal(write(fd, all, pages * PAGES_BYTES), pages * PAGES_BYTES);
	return fd;
}

typedef void deeds(uint8_t *memory, size_t bytes); /* what a guest does to its memory */

static void wait_for_end(int ready)
{
	(void)!write(ready, "r", 1);
	for (;;)
		pause();
}

static int open_proc(pid_t pid, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, flags | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static struct vm start(int memory, deeds *does, size_t bytes, int flags)
{
	struct vm vm = { 0 };
	int ready[2];
	char said;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	vm.pid = fork();
	assert_true(vm.pid >= 0);
	if (vm.pid == 0) {
		uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, memory, 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing */
		if (at == MAP_FAILED)
			_exit(1);
		does(at, bytes);
		wait_for_end(ready[1]);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &said, 1), 1);
	close(ready[0]);
	vm.mem = open_proc(vm.pid, "mem", O_RDWR);
	vm.maps = open_proc(vm.pid, "maps", O_RDONLY);
	vm.pagemap = open_proc(vm.pid, "pagemap", O_RDONLY);
	return vm;
}

static void end(struct vm *vm)
{
	kill(vm->pid, SIGKILL);
	waitpid(vm->pid, NULL, 0);
	close(vm->mem);
	close(vm->maps);
	close(vm->pagemap);
}

static void use(struct world *x, const struct vm *vm)
{
	x->w.mem = vm->mem;
	x->w.maps = vm->maps;
	x->w.pagemap = vm->pagemap;
}

static struct world make_world(uint64_t pages)
{
	uint8_t device[STATE_BYTES];
	struct world x = { 0 };
	struct err err = { 0 };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	x.node = pair[0];
	x.w.control = pair[1];
	x.w.memory = make_memory(pages);
	x.w.pages = make_file();
	x.w.state = make_file();
	x.w.saved = make_file();
	memset(device, 's', sizeof(device));
	assert_int_equal(write(x.w.saved, device, sizeof(device)), sizeof(device));
	x.w.piece = malloc(WORK_PIECE);
	x.w.other = malloc(WORK_PIECE);
	assert_int_equal(mapping_identify(x.w.memory, &x.w.file, &err), 0);
	return x;
}

static void end_world(struct world *x)
{
	const int all[] = {
		x->node, x->w.control, x->w.memory, x->w.pages, x->w.state, x->w.saved
	};

	for (size_t i = 0; i < COUNT(all); i++)
		if (all[i] >= 0)
			close(all[i]);
	free(x->w.piece);
	free(x->w.other);
}

static uint32_t crc_of(int fd, uint64_t *ret_bytes)
{
	AUTO(auto_free) uint8_t *all = NULL;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	all = malloc((size_t)st.st_size + 1);
	assert_int_equal(pread(fd, all, (size_t)st.st_size, 0), st.st_size);
	*ret_bytes = (uint64_t)st.st_size;
	return crc32c(0, (struct bytes){ all, (size_t)st.st_size });
}

/* Where the child has its memory: its table says so, and mapping_find is tested elsewhere. */
static void same_memory(const struct world *x, const struct vm *a, const struct vm *b)
{
	AUTO(auto_free) uint8_t *one = malloc(BYTES);
	AUTO(auto_free) uint8_t *two = malloc(BYTES);
	struct mappings ma, mb;
	struct err err = { 0 };

	assert_int_equal(mapping_find(a->maps, &x->w.file, BYTES, &ma, &err), 0);
	assert_int_equal(mapping_find(b->maps, &x->w.file, BYTES, &mb, &err), 0);
	assert_int_equal(pread(a->mem, one, BYTES, (off_t)ma.all[0].at), BYTES);
	assert_int_equal(pread(b->mem, two, BYTES, (off_t)mb.all[0].at), BYTES);
	assert_memory_equal(one, two, BYTES);
}

/* --- what is saved ------------------------------------------------------------------------ */

static void does_nothing(uint8_t *memory, size_t bytes)
{
	(void)memory, (void)bytes;
}

static uint8_t *page(uint8_t *memory, size_t n)
{
	return memory + n * PAGES_BYTES;
}

static void does_much(uint8_t *memory, size_t bytes)
{
	volatile uint8_t *read_only = page(memory, 30);

	(void)bytes;
	(void)*read_only;         /* in memory, as the file has it */
	page(memory, 0)[0] = 'a'; /* the first, a single byte */
	memset(page(memory, 3), 'b', (size_t)3 * PAGES_BYTES);
	memset(page(memory, 10), 0, (size_t)2 * PAGES_BYTES); /* became zero */
	memset(page(memory, 7), 0, PAGES_BYTES);              /* was zero before */
	fill(page(memory, 20), 21);                           /* written, the same as before */
	memset(page(memory, 12), 'c', PAGES_BYTES);           /* right after the zeros */
	page(memory, PAGES - 1)[PAGES_BYTES - 1] = 'z';       /* the last */
}

static const struct pages_run much[] = {
	{ 0, 1, 0 }, { 3, 3, 0 }, { 10, 2, PAGES_ZERO }, { 12, 1, 0 }, { PAGES - 1, 1, 0 },
};

static void changed_pages_come_back(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
	struct vm b = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply saved = { 0 }, synced = { 0 }, applied = { 0 };
	struct pages_run runs[COUNT(much)];
	struct pages_head head;
	struct err err = { 0 };
	uint64_t bytes = 0;

	(void)state;
	use(&x, &a);
	assert_int_equal(work_copy(&x.w, &saved, &err), 0);
	assert_int_equal(saved.pages, 6);
	assert_int_equal(saved.zero_pages, 2);
	assert_int_equal(pread(x.w.pages, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head.runs, COUNT(much));
	assert_int_equal(pread(x.w.pages, runs, sizeof(runs), (off_t)pages_table_at(&head)),
			 sizeof(runs));
	assert_memory_equal(runs, much, sizeof(much));
	assert_int_equal(saved.pages_crc, crc_of(x.w.pages, &bytes));
	assert_int_equal(saved.pages_bytes, bytes);
	assert_int_equal(saved.state_crc, crc_of(x.w.state, &bytes));
	assert_int_equal(saved.state_bytes, bytes);
	assert_int_equal(bytes, STATE_BYTES);
	assert_int_equal(work_sync(&x.w, &synced, &err), 0);
	assert_memory_equal(&synced, &saved, sizeof(saved));
	crc_of(x.w.saved, &bytes);
	assert_int_equal(bytes, 0); /* its room is given back */

	use(&x, &b);
	assert_int_equal(work_apply(&x.w, &applied, &err), 0);
	assert_int_equal(applied.pages, 6);
	assert_int_equal(applied.pages_crc, saved.pages_crc);
	same_memory(&x, &a, &b);
	end(&a);
	end(&b);
	end_world(&x);
}

static void nothing_changed(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	use(&x, &a);
	assert_int_equal(work_copy(&x.w, &r, &err), 0);
	assert_int_equal(r.pages + r.zero_pages, 0);
	assert_int_equal(r.pages_bytes, PAGES_DATA_AT);
	r = (struct copier_reply){ 0 };
	assert_int_equal(work_apply(&x.w, &r, &err), 0);
	end(&a);
	end_world(&x);
}

static void does_everything(uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes / PAGES_BYTES; i++)
		page(memory, i)[i % PAGES_BYTES] ^= 0xff;
}

/* More than fits into one piece, and what an earlier, larger save left in the file is cut off. */
static void every_page_changed(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_everything, BYTES, MAP_PRIVATE);
	struct vm b = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };
	uint64_t bytes = 0;

	(void)state;
	assert_int_equal(ftruncate(x.w.pages, 2L * BYTES), 0);
	use(&x, &a);
	assert_int_equal(work_copy(&x.w, &r, &err), 0);
	assert_int_equal(r.pages, PAGES);
	assert_int_equal(crc_of(x.w.pages, &bytes), r.pages_crc);
	assert_int_equal(bytes, r.pages_bytes);
	r = (struct copier_reply){ 0 };
	use(&x, &b);
	assert_int_equal(work_apply(&x.w, &r, &err), 0);
	same_memory(&x, &a, &b);
	end(&a);
	end(&b);
	end_world(&x);
}

static void swaps_out(uint8_t *memory, size_t bytes)
{
	does_much(memory, bytes);
	(void)madvise(memory, bytes, MADV_PAGEOUT);
}

static bool has_swap(void)
{
	FILE *f = fopen("/proc/swaps", "re");
	char line[256];
	int lines = 0;

	while (f && fgets(line, sizeof(line), f))
		lines++;
	if (f)
		fclose(f);
	return lines > 1;
}

static void swapped_pages_count(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, swaps_out, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	if (!has_swap())
		print_message("    no swap here: the pages stay in memory\n");
	use(&x, &a);
	assert_int_equal(work_copy(&x.w, &r, &err), 0);
	assert_int_equal(r.pages, 6);
	assert_int_equal(r.zero_pages, 2);
	end(&a);
	end_world(&x);
}

/* --- what is refused ---------------------------------------------------------------------- */

/* Writing into it would change the template of all. */
static void shared_memory_is_refused(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_nothing, BYTES, MAP_SHARED);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	use(&x, &a);
	assert_int_equal(work_copy(&x.w, &r, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	end(&a);
	end_world(&x);
}

static void a_vm_that_ended(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	use(&x, &a);
	kill(a.pid, SIGKILL);
	waitpid(a.pid, NULL, 0);
	assert_int_equal(work_copy(&x.w, &r, &err), -1);
	end(&a);
	end_world(&x);
}

static void device_state_is_bounded(void **state)
{
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };

	(void)state;
	use(&x, &a);
	assert_int_equal(ftruncate(x.w.saved, 0), 0);
	assert_int_equal(work_copy(&x.w, &r, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(work_sync(&x.w, &r, &err), -1); /* of what? */
	assert_int_equal(ftruncate(x.w.saved, COPIER_STATE_MAX + 1L), 0);
	r = (struct copier_reply){ 0 };
	assert_int_equal(work_copy(&x.w, &r, &err), -1);
	assert_int_equal(err.code, ERR_EXHAUSTED);
	end(&a);
	end_world(&x);
}

static void nobody_waits(void **state)
{
	struct world x = make_world(PAGES);
	struct copier_reply r = { 0 };
	struct err err = { 0 };
	struct vm a;

	(void)state;
	close(take_fd(&x.node)); /* before the child gets a copy of it */
	a = start(x.w.memory, does_everything, BYTES, MAP_PRIVATE);
	use(&x, &a);
	assert_int_equal(work_copy(&x.w, &r, &err), -1);
	assert_int_equal(err.code, ERR_UNAVAILABLE);
	end(&a);
	end_world(&x);
}

static void damage_after_writing_is_found(void **state)
{
	static const char *const names[] = { "pages", "state" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		struct world x = make_world(PAGES);
		struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
		struct copier_reply r = { 0 };
		struct err err = { 0 };

		print_message("    row: %s\n", names[i]);
		use(&x, &a);
		assert_int_equal(work_copy(&x.w, &r, &err), 0);
		assert_int_equal(pwrite(i == 0 ? x.w.pages : x.w.state, "!", 1, 5000), 1);
		assert_int_equal(work_sync(&x.w, &r, &err), -1);
		assert_non_null(strstr(err.msg, names[i]));
		end(&a);
		end_world(&x);
	}
}

/* A file that was saved, changed by somebody who can compute checksums. */
struct forgery {
	const char *name;
	void (*change)(struct pages_head *h, struct pages_run *runs);
	bool honest; /* leave the checksums as they are */
	long grow;   /* of the file */
	enum err_code want;
};

static void magic(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->magic[0] = 'X';
}

static void version(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->version++;
}

static void other_memory(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->memory_bytes *= 2;
}

static void many_pages(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->pages = UINT64_MAX / PAGES_BYTES + 2; /* times the size of a page it is small again */
}

static void many_runs(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->runs = UINT64_MAX / sizeof(*r) + 1 + COUNT(much);
}

static void beyond(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[4].first = PAGES;
}

static void far_beyond(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[4].first = UINT64_MAX;
}

static void over_the_end(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[4].count = 2;
	r[1].count = 2;
}

static void backwards(struct pages_head *h, struct pages_run *r)
{
	struct pages_run first = r[0];

	(void)h;
	r[0] = r[3];
	r[3] = first;
}

static void overlap(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[1].first = 0;
}

static void empty(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[0].count = 0;
}

static void flags(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[0].flags = 2;
}

static void more_than_there_is(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[1].count++;
}

static void zeros_as_data(struct pages_head *h, struct pages_run *r)
{
	(void)h;
	r[2].flags = 0;
}

static void count_of_zeros(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->zero_pages++;
}

static void data_crc(struct pages_head *h, struct pages_run *r)
{
	(void)r;
	h->data_crc ^= 1;
}

static void nothing(struct pages_head *h, struct pages_run *r)
{
	(void)h, (void)r;
}

static const struct forgery forgeries[] = {
	{ "nothing", nothing, .want = ERR_NONE },
	{ "magic", magic, .honest = true, .want = ERR_INVALID },
	{ "version", version, .honest = true, .want = ERR_MISMATCH },
	{ "memory size", other_memory, .want = ERR_MISMATCH },
	{ "head damaged", other_memory, .honest = true, .want = ERR_INVALID },
	{ "table damaged", beyond, .honest = true, .want = ERR_INVALID },
	{ "pages damaged", data_crc, .want = ERR_INVALID },
	{ "pages that overflow", many_pages, .want = ERR_INVALID },
	{ "runs that overflow", many_runs, .want = ERR_INVALID },
	{ "run beyond the end", beyond, .want = ERR_INVALID },
	{ "run far beyond the end", far_beyond, .want = ERR_INVALID },
	{ "run over the end", over_the_end, .want = ERR_INVALID },
	{ "out of order", backwards, .want = ERR_INVALID },
	{ "overlapping", overlap, .want = ERR_INVALID },
	{ "empty run", empty, .want = ERR_INVALID },
	{ "unknown flags", flags, .want = ERR_INVALID },
	{ "more pages than data", more_than_there_is, .want = ERR_INVALID },
	{ "zeros as data", zeros_as_data, .want = ERR_INVALID },
	{ "count of zeros", count_of_zeros, .want = ERR_INVALID },
	{ "cut off", nothing, .grow = -1, .want = ERR_INVALID },
	{ "too long", nothing, .grow = 1, .want = ERR_INVALID },
};

static void forge(int fd, const struct forgery *f)
{
	struct pages_run runs[COUNT(much)];
	struct pages_head head;
	struct stat st;
	off_t at;

	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	at = (off_t)pages_table_at(&head);
	assert_int_equal(pread(fd, runs, sizeof(runs), at), sizeof(runs));
	f->change(&head, runs);
	if (!f->honest) {
		head.runs_crc = crc32c(0, (struct bytes){ (const uint8_t *)runs, sizeof(runs) });
		pages_head_seal(&head);
	}
	assert_int_equal(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(pwrite(fd, runs, sizeof(runs), at), sizeof(runs));
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(fd, st.st_size + f->grow), 0);
}

static void hostile_files_are_refused(void **state)
{
	(void)state;
	FOR_ROWS(row, forgeries) {
		struct world x = make_world(PAGES);
		struct vm a = start(x.w.memory, does_much, BYTES, MAP_PRIVATE);
		struct copier_reply r = { 0 };
		struct err err = { 0 };
		int rc;

		use(&x, &a);
		assert_int_equal(work_copy(&x.w, &r, &err), 0);
		forge(x.w.pages, row);
		rc = work_apply(&x.w, &r, &err);
		assert_int_equal(rc, row->want == ERR_NONE ? 0 : -1);
		assert_int_equal(err.code, row->want);
		end(&a);
		end_world(&x);
	}
}

static void not_a_file_of_pages(void **state)
{
	static const off_t sizes[] = { 0, 10, PAGES_DATA_AT - 1, PAGES_DATA_AT, BYTES };
	struct world x = make_world(PAGES);
	struct vm a = start(x.w.memory, does_nothing, BYTES, MAP_PRIVATE);
	struct copier_reply r = { 0 };

	(void)state;
	use(&x, &a);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct err err = { 0 };

		assert_int_equal(ftruncate(x.w.pages, sizes[i]), 0);
		assert_int_equal(work_apply(&x.w, &r, &err), -1);
		assert_int_equal(err.code, ERR_INVALID);
	}
	end(&a);
	end_world(&x);
}

/* --- the table of mappings ---------------------------------------------------------------- */

static void maps(void **state)
{
	static const struct mapping_file file = { 0xfd, 1, 1835 };
	static const struct {
		const char *name, *text;
		enum err_code want;
		size_t n;
	} rows[] = {
		{ "whole", "1000-4000 rw-p 00000000 fd:01 1835 /memory\n", ERR_NONE, 1 },
		{ "among others",
		  "400-800 r-xp 00000000 fd:01 99 /q\n1000-4000 rw-p 00000000 fd:01 1835 /memory\n"
		  "7000-8000 rw-p 00000000 00:00 0 \n",
		  ERR_NONE, 1 },
		{ "a name with spaces", "1000-4000 rw-p 00000000 fd:01 1835   /a b fd:01\n",
		  ERR_NONE, 1 },
		{ "two pieces, the later first",
		  "1000-2000 rw-p 00002000 fd:01 1835 /m\n5000-7000 rw-p 00000000 fd:01 1835 /m\n",
		  ERR_NONE, 2 },
		{ "shared", "1000-4000 rw-s 00000000 fd:01 1835 /memory\n", ERR_INVALID },
		{ "read-only", "1000-4000 r--p 00000000 fd:01 1835 /memory\n", ERR_INVALID },
		{ "twice",
		  "1000-4000 rw-p 00000000 fd:01 1835 /m\n5000-8000 rw-p 00000000 fd:01 1835 /m\n",
		  ERR_INVALID },
		{ "a part", "1000-3000 rw-p 00000000 fd:01 1835 /memory\n", ERR_INVALID },
		{ "the other part", "1000-3000 rw-p 00001000 fd:01 1835 /memory\n", ERR_INVALID },
		{ "more than there is", "1000-5000 rw-p 00000000 fd:01 1835 /m\n", ERR_INVALID },
		{ "another device", "1000-4000 rw-p 00000000 fd:02 1835 /memory\n", ERR_INVALID },
		{ "another file", "1000-4000 rw-p 00000000 fd:01 1836 /memory\n", ERR_INVALID },
		{ "nothing", "", ERR_INVALID },
		{ "not a line", "hello\n", ERR_INVALID },
		{ "backwards", "4000-1000 rw-p 00000000 fd:01 1835 /memory\n", ERR_INVALID },
	};

	(void)state;
	FOR_ROWS(row, rows) {
		struct mappings m;
		struct err err = { 0 };
		int rc = mapping_parse(bytes_str(row->text), &file, 0x3000, &m, &err);

		assert_int_equal(rc, row->want == ERR_NONE ? 0 : -1);
		assert_int_equal(err.code, row->want);
		if (rc == 0)
			assert_int_equal(m.n, row->n);
	}
}

/* --- how long it takes: COPIER_MIB of memory, of which every eighth 16 KiB changed ----------- */

static void changes_an_eighth(uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes / PAGES_BYTES; i += 32)
		for (size_t k = 0; k < 4; k++)
			memset(page(memory, i + k), (int)(i + k) | 1, PAGES_BYTES);
	for (size_t i = 0; i < bytes / PAGES_BYTES; i++)
		(void)*(volatile uint8_t *)page(memory, i);
}

/* Of the processor: how long others kept it busy is no matter of this. */
static uint64_t busy_us(void)
{
	struct timespec t;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void how_long(void **state)
{
	const char *mib = getenv("COPIER_MIB");
	uint64_t bytes = (mib ? strtoul(mib, NULL, 10) : 16) << 20, begun;
	struct world x = make_world(bytes / PAGES_BYTES);
	struct vm a = start(x.w.memory, changes_an_eighth, bytes, MAP_PRIVATE);
	struct vm b = start(x.w.memory, does_nothing, bytes, MAP_PRIVATE);
	struct copier_reply r = { 0 };
	struct err err = { 0 };
	uint64_t save, apply;

	(void)state;
	use(&x, &a);
	begun = busy_us();
	assert_int_equal(work_copy(&x.w, &r, &err), 0);
	save = busy_us() - begun;
	use(&x, &b);
	begun = busy_us();
	assert_int_equal(work_apply(&x.w, &r, &err), 0);
	apply = busy_us() - begun;
	print_message("    %lu MiB, %lu pages changed: save %lu us, apply %lu us of a processor\n",
		      bytes >> 20, r.pages, save, apply);
	end(&a);
	end(&b);
	end_world(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changed_pages_come_back),
		cmocka_unit_test(nothing_changed),
		cmocka_unit_test(every_page_changed),
		cmocka_unit_test(swapped_pages_count),
		cmocka_unit_test(shared_memory_is_refused),
		cmocka_unit_test(a_vm_that_ended),
		cmocka_unit_test(device_state_is_bounded),
		cmocka_unit_test(nobody_waits),
		cmocka_unit_test(damage_after_writing_is_found),
		cmocka_unit_test(hostile_files_are_refused),
		cmocka_unit_test(not_a_file_of_pages),
		cmocka_unit_test(maps),
		cmocka_unit_test(how_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
