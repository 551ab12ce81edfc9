/* save.c - the pages a VM has written, as far as they differ from what they were. */
/* #syscalls: pread64 pwrite64 ftruncate fstat newfstatat */
#include "copier/work.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "copier/pages.h"

enum {
	PIECE_PAGES = WORK_PIECE / PAGES_BYTES,
	ENTRIES = 64 * 1024, /* of the page table, read at once: those of 256 MiB */
};

/* Bits of an entry of /proc/PID/pagemap. */
static const uint64_t in_memory = 1ull << 63, swapped = 1ull << 62, of_file = 1ull << 61;

struct save {
	struct work *w;
	struct pages_head head;
	struct buf runs;
	size_t filled; /* bytes of w->piece that wait to be written */
	uint64_t *entries;
	const uint8_t *was; /* the memory as the VM found it: all of the file */
};

static const uint8_t zeros[PAGES_BYTES];

static int flush(struct save *s, struct err *err)
{
	uint64_t at = pages_table_at(&s->head) - s->filled;

	s->head.data_crc = crc32c(s->head.data_crc, (struct bytes){ s->w->piece, s->filled });
	if (work_write(s->w->pages, s->w->piece, s->filled, at, err) < 0)
		return err_wrap(err, "write pages");
	s->filled = 0;
	return 0;
}

static int add_run(struct save *s, uint64_t page, uint32_t flags, struct err *err)
{
	struct pages_run *last = NULL, run = { page, 1, flags };

	if (s->runs.len > 0)
		last = (struct pages_run *)(void *)(s->runs.ptr + s->runs.len - sizeof(*last));
	if (last && last->flags == flags && last->first + last->count == page) {
		last->count++;
		return 0;
	}
	s->head.runs++;
	return buf_add(&s->runs, (struct bytes){ (const uint8_t *)&run, sizeof(run) }, err);
}

/* At piece + filled, behind what is kept already; a page that is kept moves up to it. */
static int keep_page(struct save *s, uint64_t page, const uint8_t *now, const uint8_t *was,
		     struct err *err)
{
	uint8_t *to = s->w->piece + s->filled;

	if (memcmp(now, was, PAGES_BYTES) == 0)
		return 0;
	if (memcmp(now, zeros, PAGES_BYTES) == 0) {
		s->head.zero_pages++;
		return add_run(s, page, PAGES_ZERO, err);
	}
	if (to != now)
		memcpy(to, now, PAGES_BYTES);
	s->filled += PAGES_BYTES;
	s->head.pages++;
	return add_run(s, page, 0, err);
}

/* So many pages one after the other, all written by the VM: at address `at`, from page `first`. */
static int take(struct save *s, uint64_t at, uint64_t first, size_t n, struct err *err)
{
	struct work *w = s->w;

	while (n > 0) {
		size_t room = (WORK_PIECE - s->filled) / PAGES_BYTES, now = n < room ? n : room;
		uint8_t *to = w->piece + s->filled;

		if (room == 0) {
			if (flush(s, err) < 0 || work_go_on(w, err) < 0)
				return -1;
			continue;
		}
		if (work_read(w->mem, to, now * PAGES_BYTES, at, err) < 0)
			return err_wrap(err, "read memory");
		for (size_t i = 0; i < now; i++)
			if (keep_page(s, first + i, to + i * PAGES_BYTES,
				      s->was + (first + i) * PAGES_BYTES, err) < 0)
				return -1;
		at += now * PAGES_BYTES;
		first += now;
		n -= now;
	}
	return 0;
}

/* A page that is swapped out was written, too; one that is absent is as the file has it. */
static bool written(uint64_t entry)
{
	return (entry & (in_memory | swapped)) && !(entry & of_file);
}

static int walk_entries(struct save *s, uint64_t at, uint64_t first, size_t n, struct err *err)
{
	const uint64_t *e = s->entries;

	for (size_t i = 0; i < n;) {
		size_t from = i;

		while (i < n && !written(e[i]))
			i++;
		from = i;
		while (i < n && written(e[i]))
			i++;
		if (i > from && take(s, at + from * PAGES_BYTES, first + from, i - from, err) < 0)
			return -1;
	}
	return 0;
}

static int walk_mapping(struct save *s, const struct mapping *m, struct err *err)
{
	for (uint64_t done = 0; done < m->bytes;) {
		uint64_t left = (m->bytes - done) / PAGES_BYTES, at = m->at + done;
		size_t n = left < ENTRIES ? (size_t)left : ENTRIES;

		if (work_read(s->w->pagemap, s->entries, n * sizeof(*s->entries),
			      at / PAGES_BYTES * sizeof(*s->entries), err) < 0)
			return err_wrap(err, "read the page table");
		if (walk_entries(s, at, (m->offset + done) / PAGES_BYTES, n, err) < 0)
			return -1;
		done += n * PAGES_BYTES;
	}
	return 0;
}

/* The table, then the head: a file that is cut off says nothing that could be believed. */
static int finish(struct save *s, struct copier_reply *ret, struct err *err)
{
	uint8_t first[PAGES_DATA_AT] = { 0 };
	struct pages_head *h = &s->head;
	uint64_t data = h->pages * PAGES_BYTES;

	if (flush(s, err) < 0)
		return -1;
	h->runs_crc = crc32c(0, buf_view(&s->runs));
	pages_head_seal(h);
	memcpy(first, h, sizeof(*h));
	if (work_write(s->w->pages, s->runs.ptr, s->runs.len, pages_table_at(h), err) < 0 ||
	    work_write(s->w->pages, first, sizeof(first), 0, err) < 0)
		return err_wrap(err, "write the table of pages");
	if (ftruncate(s->w->pages, (off_t)pages_file_bytes(h)) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "size the file of pages");
	ret->pages = h->pages;
	ret->zero_pages = h->zero_pages;
	ret->pages_bytes = pages_file_bytes(h);
	ret->pages_crc = crc32c(0, (struct bytes){ first, sizeof(first) });
	ret->pages_crc = work_crc_join(ret->pages_crc, h->data_crc, data);
	ret->pages_crc = work_crc_join(ret->pages_crc, h->runs_crc, s->runs.len);
	return 0;
}

static int copy_pages(struct save *s, struct copier_reply *ret, struct err *err)
{
	struct mappings found;
	void *was;
	int rc = 0;

	if (work_memory_bytes(s->w, &s->head.memory_bytes, err) < 0 ||
	    mapping_find(s->w->maps, &s->w->file, s->head.memory_bytes, &found, err) < 0)
		return -1;
	/* mapped, not read: most pages that were written differ in their first bytes */
	was = mmap(NULL, s->head.memory_bytes, PROT_READ, MAP_SHARED, s->w->memory, 0);
	if (was == MAP_FAILED)
		return err_set(err, ERR_EXHAUSTED, errno, "map the memory file");
	s->was = was;
	for (size_t i = 0; i < found.n && rc == 0; i++)
		rc = walk_mapping(s, &found.all[i], err);
	munmap(was, s->head.memory_bytes);
	return rc < 0 ? -1 : finish(s, ret, err);
}

/* QEMU wrote it, under whatever influence: its length is bounded, its meaning is not asked for. */
static int copy_state(struct work *w, struct copier_reply *ret, struct err *err)
{
	struct stat st;

	if (fstat(w->saved, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
		return err_set(err, ERR_INVALID, 0, "the VM has no saved device state");
	if (st.st_size > COPIER_STATE_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%ld bytes of device state, limit is %d",
			       st.st_size, COPIER_STATE_MAX);
	while (ret->state_bytes < (uint64_t)st.st_size) {
		uint64_t left = (uint64_t)st.st_size - ret->state_bytes;
		size_t n = left < WORK_PIECE ? (size_t)left : WORK_PIECE;

		if (work_read(w->saved, w->piece, n, ret->state_bytes, err) < 0 ||
		    work_write(w->state, w->piece, n, ret->state_bytes, err) < 0)
			return err_wrap(err, "copy the device state");
		ret->state_crc = crc32c(ret->state_crc, (struct bytes){ w->piece, n });
		ret->state_bytes += n;
	}
	if (ftruncate(w->state, st.st_size) < 0 || ftruncate(w->saved, 0) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "size the device state");
	return 0;
}

int work_copy(struct work *w, struct copier_reply *ret, struct err *err)
{
	struct save s = { .w = w, .runs = BUF_MAX(PAGES_RUNS_MAX * sizeof(struct pages_run)) };
	int failed;

	w->done = (struct copier_reply){ 0 };
	s.entries = malloc(ENTRIES * sizeof(*s.entries));
	if (!s.entries)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "copy");
	failed = copy_pages(&s, ret, err) < 0 || copy_state(w, ret, err) < 0;
	free(s.entries);
	buf_done(&s.runs);
	if (failed)
		return -1;
	w->done = *ret;
	return 0;
}
