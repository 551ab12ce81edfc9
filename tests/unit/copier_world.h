/* copier_world.h - a copier's descriptors, and a child with a private mapping that plays QEMU. */
#pragma once

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
#include "copier/apply.h"
#include "copier/pages.h"
#include "copier/save.h"

enum { PAGES = 1024, BYTES = PAGES * PAGES_BYTES, STATE_BYTES = 70000 };

struct vm { /* a child */
	pid_t pid;
	int mem, maps, pagemap;
	int go, ready; /* see tell() */
};

struct world {
	struct work w;
	int node; /* the other end of control */
};

static inline int make_file(void)
{
	int fd = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd < 0)
		fd = memfd_create("copier", MFD_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* Page n of the template: n in every word, but for page 7, which is zero. */
static inline void fill(uint8_t *page, uint64_t n)
{
	for (size_t i = 0; i < PAGES_BYTES; i += sizeof(n))
		memcpy(page + i, &n, sizeof(n));
}

static inline int make_memory(uint64_t pages)
{
	AUTO(auto_free) uint8_t *all = malloc(pages * PAGES_BYTES);
	int fd = make_file();

	for (uint64_t i = 0; i < pages; i++)
		fill(all + i * PAGES_BYTES, i == 7 ? 0 : i + 1);
	assert_int_equal(write(fd, all, pages * PAGES_BYTES), pages * PAGES_BYTES);
	return fd;
}

typedef void deeds(uint8_t *memory, size_t bytes); /* what a guest does to its memory */

/* Does something more whenever it is told to. */
static inline void wait_for_end(int ready, int go, deeds *later, uint8_t *memory, size_t bytes)
{
	char said;

	for (;;) {
		(void)!write(ready, "r", 1);
		if (read(go, &said, 1) != 1)
			for (;;)
				pause();
		later(memory, bytes);
	}
}

static inline int open_proc(pid_t pid, const char *name, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, flags | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static inline struct vm start_busy(int memory, deeds *does, deeds *later, size_t bytes, int flags)
{
	struct vm vm = { 0 };
	int ready[2], go[2];
	char said;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	assert_int_equal(pipe2(go, O_CLOEXEC), 0);
	vm.pid = fork();
	assert_true(vm.pid >= 0);
	if (vm.pid == 0) {
		uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, memory, 0);

		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing */
		if (at == MAP_FAILED)
			_exit(1);
		does(at, bytes);
		close(go[1]);
		wait_for_end(ready[1], go[0], later, at, bytes);
	}
	close(ready[1]);
	close(go[0]);
	vm.ready = ready[0];
	vm.go = go[1];
	assert_int_equal(read(vm.ready, &said, 1), 1);
	vm.mem = open_proc(vm.pid, "mem", O_RDWR);
	vm.maps = open_proc(vm.pid, "maps", O_RDONLY);
	vm.pagemap = open_proc(vm.pid, "pagemap", O_RDONLY);
	return vm;
}

/* To do what it does later; it has done so when this returns. */
static inline void tell(const struct vm *vm)
{
	char said;

	assert_int_equal(write(vm->go, "g", 1), 1);
	assert_int_equal(read(vm->ready, &said, 1), 1);
}

static inline void end(struct vm *vm)
{
	close(vm->go);
	close(vm->ready);
	kill(vm->pid, SIGKILL);
	waitpid(vm->pid, NULL, 0);
	close(vm->mem);
	close(vm->maps);
	close(vm->pagemap);
}

static inline struct vm start(int memory, deeds *does, size_t bytes, int flags)
{
	return start_busy(memory, does, does, bytes, flags);
}

static inline void use(struct world *x, const struct vm *vm)
{
	x->w.mem = vm->mem;
	x->w.maps = vm->maps;
	x->w.pagemap = vm->pagemap;
}

static inline struct world make_world(uint64_t pages)
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

static inline void end_world(struct world *x)
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

static inline uint32_t crc_of(int fd, uint64_t *ret_bytes)
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
static inline void same_memory(const struct world *x, const struct vm *a, const struct vm *b)
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

static inline int copy_all(struct work *w, struct copier_reply *ret, struct err *err)
{
	return work_copy(w, ret, err) < 0 ? -1 : work_state(w, ret, err);
}

/* --- what a guest may do -------------------------------------------------------------------- */

static inline void does_nothing(uint8_t *memory, size_t bytes)
{
	(void)memory, (void)bytes;
}

static inline uint8_t *page(uint8_t *memory, size_t n)
{
	return memory + n * PAGES_BYTES;
}

static inline void does_much(uint8_t *memory, size_t bytes)
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
	{ 0, 1, 0, 0 },  { 3, 3, 0, 1 },         { 10, 2, PAGES_ZERO, 0 },
	{ 12, 1, 0, 4 }, { PAGES - 1, 1, 0, 5 },
};
