/* apply.c - saved pages back into the memory of a VM that does not run yet. */
/* #syscalls: pread64 pwrite64 fstat newfstatat */
#include "copier/apply.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "copier/pages.h"

enum { PIECE_COPIES = WORK_PIECE / PAGES_BYTES }; /* read at once, by one of the crew */

struct apply {
	struct crew_task task;
	struct work *w;
	struct pages_head head;
	struct pages_run *runs; /* owned; in the order of their copies */
	uint32_t *crcs;         /* owned; of each piece */
	struct mappings to;
	uint32_t head_crc;
};

/* --- what the file says ----------------------------------------------------------------------- */

/* Sorted they are found by the piece they are in; each copy is for one page. */
static int sort_runs(struct apply *a, struct err *err)
{
	uint64_t next = 0;

	pages_runs_sort(a->runs, a->head.runs);
	for (uint64_t i = 0; i < a->head.runs; i++) {
		const struct pages_run *r = &a->runs[i];

		if (r->flags & PAGES_ZERO)
			continue;
		if (r->copy < next)
			return err_set(err, ERR_INVALID, 0, "two pages have one copy");
		next = r->copy + r->count;
	}
	return 0;
}

static int read_table(struct apply *a, struct err *err)
{
	size_t bytes = a->head.runs * sizeof(*a->runs);

	a->runs = malloc(bytes + 1);
	a->crcs = calloc(a->head.copies / PIECE_COPIES + 1, sizeof(*a->crcs));
	if (!a->runs || !a->crcs)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read the table of pages");
	if (work_read(a->w->pages, a->runs, bytes, pages_table_at(&a->head), err) < 0)
		return -1;
	if (crc32c(0, (struct bytes){ (const uint8_t *)a->runs, bytes }) != a->head.runs_crc)
		return err_set(err, ERR_INVALID, 0, "the table of pages is damaged");
	return pages_runs_check(&a->head, a->runs, err) < 0 ? -1 : sort_runs(a, err);
}

static int read_head(struct apply *a, struct err *err)
{
	uint8_t first[PAGES_DATA_AT];
	uint64_t memory_bytes = 0;
	struct stat st;

	if (work_memory_bytes(a->w, &memory_bytes, err) < 0)
		return -1;
	if (fstat(a->w->pages, &st) < 0 || st.st_size < PAGES_DATA_AT)
		return err_set(err, ERR_INVALID, 0, "too short for a file of pages");
	if (work_read(a->w->pages, first, sizeof(first), 0, err) < 0)
		return -1;
	memcpy(&a->head, first, sizeof(a->head));
	a->head_crc = crc32c(0, (struct bytes){ first, sizeof(first) });
	if (pages_head_check(&a->head, (uint64_t)st.st_size, memory_bytes, err) < 0)
		return -1;
	return pages_base_check(&a->head, a->w->base_crc, err);
}

/* --- into the memory -------------------------------------------------------------------------- */

/* The address of a place in memory, and how much of it follows there. */
static uint64_t address(const struct apply *a, uint64_t place, uint64_t *ret_bytes)
{
	for (size_t i = 0; i < a->to.n; i++) {
		const struct mapping *m = &a->to.all[i];

		if (place - m->offset < m->bytes) {
			*ret_bytes = m->bytes - (place - m->offset);
			return m->at + (place - m->offset);
		}
	}
	abort(); /* the table was checked against the memory, all of which is mapped */
}

static int put(const struct apply *a, uint64_t page, const uint8_t *from, uint64_t bytes,
	       struct err *err)
{
	uint64_t place = page * PAGES_BYTES;

	while (bytes > 0) {
		uint64_t room = 0, at = address(a, place, &room), n = bytes < room ? bytes : room;

		if (work_write(a->w->mem, from, n, at, err) < 0)
			return err_wrap(err, "write memory");
		from += n;
		place += n;
		bytes -= n;
	}
	return 0;
}

static int put_zeros(const struct apply *a, struct err *err)
{
	memset(a->w->other, 0, WORK_PIECE);
	for (uint64_t i = 0; i < a->head.runs; i++) {
		const struct pages_run *r = &a->runs[i];
		uint64_t most = r->flags & PAGES_ZERO ? r->count : 0;

		for (uint64_t done = 0; done < most; done += PIECE_COPIES) {
			uint64_t n = most - done < PIECE_COPIES ? most - done : PIECE_COPIES;

			if (work_go_on(a->w, err) < 0 ||
			    put(a, r->first + done, a->w->other, n * PAGES_BYTES, err) < 0)
				return -1;
		}
	}
	return 0;
}

/* The first run with a copy at or behind this one. */
static uint64_t find_run(const struct apply *a, uint64_t copy)
{
	uint64_t from = 0, to = a->head.runs;

	while (from < to) {
		uint64_t middle = from + (to - from) / 2;
		const struct pages_run *r = &a->runs[middle];

		if (r->flags & PAGES_ZERO || r->copy + r->count <= copy)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* What a piece of copies has for the memory; a run may begin before it and end behind it. */
static int put_piece(const struct apply *a, const uint8_t *piece, uint64_t first, uint64_t n,
		     struct err *err)
{
	for (uint64_t i = find_run(a, first); i < a->head.runs; i++) {
		const struct pages_run *r = &a->runs[i];
		uint64_t from = r->copy > first ? r->copy : first, to = r->copy + r->count;

		if (r->copy >= first + n)
			break;
		to = to < first + n ? to : first + n;
		if (put(a, r->first + (from - r->copy), piece + (from - first) * PAGES_BYTES,
			(to - from) * PAGES_BYTES, err) < 0)
			return -1;
	}
	return 0;
}

static int apply_piece(struct crew_task *t, unsigned int member, uint64_t unit, struct err *err)
{
	struct apply *a = CONTAINER_OF(t, struct apply, task);
	uint8_t *piece = member == 0 ? a->w->piece : a->w->other;
	uint64_t first = unit * PIECE_COPIES, left = a->head.copies - first;
	uint64_t n = left < PIECE_COPIES ? left : PIECE_COPIES;

	if (work_go_on(a->w, err) < 0 || work_read(a->w->pages, piece, n * PAGES_BYTES,
						   PAGES_DATA_AT + first * PAGES_BYTES, err) < 0)
		return err_wrap(err, "read pages");
	a->crcs[unit] = crc32c(0, (struct bytes){ piece, n * PAGES_BYTES });
	return put_piece(a, piece, first, n, err);
}

/* Damage that shows only while the pages are written is early enough: a failure here ends the VM
 * before it ran. */
static int put_all(struct apply *a, struct err *err)
{
	uint64_t pieces = (a->head.copies + PIECE_COPIES - 1) / PIECE_COPIES;
	uint32_t crc = 0;

	a->task.run = apply_piece;
	if (put_zeros(a, err) < 0 || crew_run(a->w->crew, &a->task, pieces, err) < 0)
		return -1;
	for (uint64_t i = 0; i < pieces; i++) {
		uint64_t left = a->head.copies - i * PIECE_COPIES;

		crc = work_crc_join(crc, a->crcs[i],
				    (left < PIECE_COPIES ? left : PIECE_COPIES) * PAGES_BYTES);
	}
	if (crc != a->head.data_crc)
		return err_set(err, ERR_INVALID, 0, "the pages are damaged");
	return 0;
}

int work_apply(struct work *w, struct copier_reply *ret, struct err *err)
{
	struct apply a = { .w = w };
	int failed = read_head(&a, err) < 0 || read_table(&a, err) < 0 ||
		     mapping_find(w->maps, &w->file, a.head.memory_bytes, &a.to, err) < 0 ||
		     put_all(&a, err) < 0;
	const struct pages_head *h = &a.head;

	free(a.runs);
	free(a.crcs);
	if (failed)
		return err_wrap(err, "apply pages");
	ret->pages = h->pages;
	ret->zero_pages = h->zero_pages;
	ret->pages_bytes = pages_file_bytes(h);
	ret->pages_crc = work_crc_join(a.head_crc, h->data_crc, h->copies * PAGES_BYTES);
	ret->pages_crc =
		work_crc_join(ret->pages_crc, h->runs_crc, h->runs * sizeof(struct pages_run));
	return 0;
}
