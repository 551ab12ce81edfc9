/* draft.c - looks at all pages side by side, then copies what has changed, one after the other. */
/* #syscalls: pread64 pwrite64 mmap munmap sync_file_range */
#include "copier/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "base/crc32c.h"
#include "copier/pages.h"

enum {
	LOOK_PAGES = 64, /* compared at once: small enough to stay in the processor's cache */
	START_WRITING = 8 * 1024 * 1024, /* so many bytes are worth a request to the disk */
};

/* Bits of an entry of /proc/PID/pagemap. */
static const uint64_t in_memory = 1ull << 63, swapped = 1ull << 62, of_file = 1ull << 61;

static const uint8_t zeros[PAGES_BYTES];

/* What is to be done with a page. */
enum mark { MARK_NONE, MARK_SAME, MARK_COPY }; /* not written; as its copy is; else */

/* What each of the crew has for itself. */
struct eyes {
	uint64_t entries[DRAFT_UNIT_PAGES];
	uint8_t pages[LOOK_PAGES * PAGES_BYTES];
};

struct look {
	struct crew_task task;
	struct draft *d;
	const uint8_t *copies; /* the file of pages, mapped from its first copy on; NULL: none */
	uint8_t *marks;        /* enum mark of each page */
	struct eyes *eyes;     /* of each member */
};

/* --- where a page is ------------------------------------------------------------------------ */

/* Its address; and how many pages, of n at most, follow there. */
static uint64_t address(const struct draft *d, uint64_t page, uint64_t *n)
{
	uint64_t place = page * PAGES_BYTES;

	for (size_t i = 0; i < d->found.n; i++) {
		const struct mapping *m = &d->found.all[i];
		uint64_t left;

		if (place - m->offset >= m->bytes)
			continue;
		left = (m->bytes - (place - m->offset)) / PAGES_BYTES;
		*n = *n < left ? *n : left;
		return m->at + (place - m->offset);
	}
	abort(); /* all of the memory is mapped, and no page is beyond it */
}

/* --- looking, side by side ------------------------------------------------------------------ */

/* A page that is swapped out was written, too; one that is absent is as the file has it. */
static bool written(uint64_t entry)
{
	return (entry & (in_memory | swapped)) && !(entry & of_file);
}

static void compare(const struct look *l, const uint8_t *now, uint64_t first, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t copy = l->d->last[first + i] - COPY_AT;

		if (memcmp(now + i * PAGES_BYTES, l->copies + copy * PAGES_BYTES, PAGES_BYTES) == 0)
			l->marks[first + i] = MARK_SAME;
	}
}

struct span { /* pages one after the other, and the address of the first */
	uint64_t at, first, n;
};

/* All of them have copies. */
static int look_again(const struct look *l, struct eyes *e, struct span s, struct err *err)
{
	while (s.n > 0) {
		uint64_t now = s.n < LOOK_PAGES ? s.n : LOOK_PAGES;

		if (work_read(l->d->w->mem, e->pages, now * PAGES_BYTES, s.at, err) < 0)
			return err_wrap(err, "read memory");
		compare(l, e->pages, s.first, now);
		s = (struct span){ s.at + now * PAGES_BYTES, s.first + now, s.n - now };
	}
	return 0;
}

static bool has_copy(const struct look *l, uint64_t page)
{
	return l->marks[page] == MARK_COPY && l->d->last[page] >= COPY_AT;
}

static int look_at(const struct look *l, struct eyes *e, struct span s, struct err *err)
{
	if (work_read(l->d->w->pagemap, e->entries, s.n * sizeof(*e->entries),
		      s.at / PAGES_BYTES * sizeof(*e->entries), err) < 0)
		return err_wrap(err, "read the page table");
	for (uint64_t i = 0; i < s.n; i++)
		l->marks[s.first + i] = written(e->entries[i]) ? MARK_COPY : MARK_NONE;
	for (uint64_t i = 0; i < s.n;) {
		struct span same = { s.at + i * PAGES_BYTES, s.first + i, 0 };

		while (i < s.n && has_copy(l, s.first + i)) {
			same.n++;
			i++;
		}
		if (look_again(l, e, same, err) < 0)
			return -1;
		i += same.n == 0;
	}
	return 0;
}

static int look_unit(struct crew_task *t, unsigned int member, uint64_t unit, struct err *err)
{
	struct look *l = CONTAINER_OF(t, struct look, task);
	uint64_t first = unit * DRAFT_UNIT_PAGES, left = l->d->pages - first;

	if (work_go_on(l->d->w, err) < 0)
		return -1;
	left = left < DRAFT_UNIT_PAGES ? left : DRAFT_UNIT_PAGES;
	while (left > 0) {
		uint64_t n = left, at = address(l->d, first, &n);

		if (look_at(l, &l->eyes[member], (struct span){ at, first, n }, err) < 0)
			return -1;
		first += n;
		left -= n;
	}
	return 0;
}

static int look(struct draft *d, uint8_t *marks, struct err *err)
{
	uint64_t units = (d->pages + DRAFT_UNIT_PAGES - 1) / DRAFT_UNIT_PAGES;
	uint64_t bytes = d->copies * PAGES_BYTES;
	struct look l = { .task = { look_unit }, .d = d, .marks = marks };
	void *copies = NULL;
	int rc;

	l.eyes = malloc(CREW_MEMBERS * sizeof(*l.eyes));
	if (!l.eyes)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "look at the memory");
	if (bytes > 0)
		copies = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, d->w->pages, PAGES_DATA_AT);
	l.copies = copies;
	rc = copies == MAP_FAILED ? err_set(err, ERR_EXHAUSTED, errno, "map the file of pages")
				  : crew_run(d->w->crew, &l.task, units, err);
	if (copies && copies != MAP_FAILED)
		munmap(copies, bytes);
	free(l.eyes);
	return rc;
}

/* --- copying -------------------------------------------------------------------------------- */

/* Has the disk begin, so that there is less to wait for at the end; no matter if it cannot. */
static void start_writing(struct draft *d, uint64_t to)
{
	if (to < d->started + START_WRITING)
		return;
	(void)!sync_file_range(d->w->pages, (off_t)d->started, (off_t)(to - d->started),
			       SYNC_FILE_RANGE_WRITE);
	d->started = to;
}

static int flush(struct draft *d, struct err *err)
{
	uint64_t to = PAGES_DATA_AT + d->copies * PAGES_BYTES;

	d->crc = crc32c(d->crc, (struct bytes){ d->w->piece, d->filled });
	if (work_write(d->w->pages, d->w->piece, d->filled, to - d->filled, err) < 0)
		return err_wrap(err, "write pages");
	d->filled = 0;
	start_writing(d, to);
	return 0;
}

/* At piece + filled, behind what is kept already; a page that is kept moves up to it. */
static void keep_page(struct draft *d, uint64_t page, const uint8_t *now)
{
	uint8_t *to = d->w->piece + d->filled;

	if (memcmp(now, d->was + page * PAGES_BYTES, PAGES_BYTES) == 0) {
		d->last[page] = COPY_NONE;
		return;
	}
	if (memcmp(now, zeros, PAGES_BYTES) == 0) {
		d->last[page] = COPY_ZERO;
		return;
	}
	if (to != now)
		memcpy(to, now, PAGES_BYTES);
	d->filled += PAGES_BYTES;
	d->last[page] = (uint32_t)(COPY_AT + d->copies++);
}

/* So many pages one after the other, all written by the VM. */
static int take(struct draft *d, uint64_t first, uint64_t n, struct err *err)
{
	struct work *w = d->w;

	while (n > 0) {
		uint64_t room = (WORK_PIECE - d->filled) / PAGES_BYTES, now = n < room ? n : room;
		uint64_t at = address(d, first, &now);
		uint8_t *to = w->piece + d->filled;

		if (room == 0) {
			if (flush(d, err) < 0 || work_go_on(w, err) < 0)
				return -1;
			continue;
		}
		if (work_read(w->mem, to, now * PAGES_BYTES, at, err) < 0)
			return err_wrap(err, "read memory");
		for (uint64_t i = 0; i < now; i++)
			keep_page(d, first + i, to + i * PAGES_BYTES);
		first += now;
		n -= now;
	}
	return 0;
}

static int take_marked(struct draft *d, const uint8_t *marks, struct err *err)
{
	for (uint64_t i = 0; i < d->pages;) {
		uint64_t from = i;

		while (i < d->pages && marks[i] == MARK_COPY)
			i++;
		if (i > from && take(d, from, i - from, err) < 0)
			return -1;
		if (i == from && marks[i++] == MARK_NONE)
			d->last[from] = COPY_NONE;
	}
	return flush(d, err);
}

int draft_pass(struct draft *d, struct err *err)
{
	uint8_t *marks;
	int rc;

	if (d->passes == PAGES_COPIES_MAX)
		return err_set(err, ERR_INVALID, 0, "copied %u times already", d->passes);
	d->passes++;
	marks = malloc(d->pages);
	if (!marks)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "copy");
	rc = look(d, marks, err);
	if (rc == 0)
		rc = take_marked(d, marks, err);
	free(marks);
	return rc;
}

/* --- its beginning and its end -------------------------------------------------------------- */

static int open_memory(struct draft *d, struct err *err)
{
	uint64_t bytes = 0;
	void *was;

	if (work_memory_bytes(d->w, &bytes, err) < 0 ||
	    mapping_find(d->w->maps, &d->w->file, bytes, &d->found, err) < 0)
		return -1;
	/* mapped, not read: most pages that were written differ in their first bytes */
	was = mmap(NULL, bytes, PROT_READ, MAP_SHARED, d->w->memory, 0);
	if (was == MAP_FAILED)
		return err_set(err, ERR_EXHAUSTED, errno, "map the memory file");
	d->was = was;
	d->pages = bytes / PAGES_BYTES;
	return 0;
}

int draft_open(struct draft *d, struct work *w, struct err *err)
{
	*d = (struct draft){ .w = w };
	if (open_memory(d, err) < 0)
		return -1;
	d->last = calloc(d->pages, sizeof(*d->last));
	if (d->last)
		return 0;
	draft_close(d);
	return err_set(err, ERR_EXHAUSTED, ENOMEM, "copy");
}

void draft_close(struct draft *d)
{
	if (d->was)
		munmap((void *)(uintptr_t)d->was, d->pages * PAGES_BYTES);
	free(d->last);
	*d = (struct draft){ 0 };
}
