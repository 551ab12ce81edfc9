/* apply.c - saved pages back into the memory of a VM that does not run yet. */
/* #syscalls: pread64 pwrite64 fstat newfstatat */
#include "copier/work.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "copier/pages.h"

struct apply {
	struct work *w;
	struct pages_head head;
	struct pages_run *runs; /* owned */
	struct mappings to;
	uint64_t read;     /* bytes of copies read so far */
	size_t used, have; /* of w->piece, which is the last of them */
	uint32_t head_crc, data_crc;
};

static int read_table(struct apply *a, struct err *err)
{
	size_t bytes = a->head.runs * sizeof(*a->runs);

	a->runs = malloc(bytes + 1);
	if (!a->runs)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "read the table of pages");
	if (work_read(a->w->pages, a->runs, bytes, pages_table_at(&a->head), err) < 0)
		return -1;
	if (crc32c(0, (struct bytes){ (const uint8_t *)a->runs, bytes }) != a->head.runs_crc)
		return err_set(err, ERR_INVALID, 0, "the table of pages is damaged");
	if (pages_runs_check(&a->head, a->runs, err) < 0)
		return -1;
	pages_runs_sort(a->runs, a->head.runs);
	return 0;
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
	return pages_head_check(&a->head, (uint64_t)st.st_size, memory_bytes, err);
}

/* More data, when all that was read is used. */
static int refill(struct apply *a, struct err *err)
{
	uint64_t left = a->head.copies * PAGES_BYTES - a->read;
	size_t n = left < WORK_PIECE ? (size_t)left : WORK_PIECE;

	if (a->used < a->have)
		return 0;
	if (work_go_on(a->w, err) < 0 ||
	    work_read(a->w->pages, a->w->piece, n, PAGES_DATA_AT + a->read, err) < 0)
		return err_wrap(err, "read pages");
	a->data_crc = crc32c(a->data_crc, (struct bytes){ a->w->piece, n });
	a->read += n;
	a->used = 0;
	a->have = n;
	return 0;
}

/* Over copies that nobody uses, which count for the checksum only. */
static int seek(struct apply *a, uint64_t copy, struct err *err)
{
	uint64_t to = copy * PAGES_BYTES;

	if (to < a->read - a->have + a->used)
		return err_set(err, ERR_INVALID, 0, "two pages have one copy");
	while (to > a->read) {
		a->used = a->have;
		if (refill(a, err) < 0)
			return -1;
	}
	a->used = (size_t)(to - (a->read - a->have));
	return 0;
}

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

static int put_run(struct apply *a, const struct pages_run *r, struct err *err)
{
	uint64_t place = r->first * PAGES_BYTES, left = (uint64_t)r->count * PAGES_BYTES;

	if (!(r->flags & PAGES_ZERO) && seek(a, r->copy, err) < 0)
		return -1;
	while (left > 0) {
		const uint8_t *from = a->w->other;
		uint64_t n = WORK_PIECE, room = 0, at = address(a, place, &room);

		if (!(r->flags & PAGES_ZERO)) {
			if (refill(a, err) < 0)
				return -1;
			from = a->w->piece + a->used;
			n = a->have - a->used;
		}
		n = n < left ? n : left;
		n = n < room ? n : room;
		if (work_write(a->w->mem, from, n, at, err) < 0)
			return err_wrap(err, "write memory");
		a->used += r->flags & PAGES_ZERO ? 0 : n;
		place += n;
		left -= n;
	}
	return 0;
}

/* Damage that shows only while the pages are written is early enough: a failure here ends the VM
 * before it ran. */
static int put_all(struct apply *a, struct err *err)
{
	memset(a->w->other, 0, WORK_PIECE);
	for (uint64_t i = 0; i < a->head.runs; i++)
		if (put_run(a, &a->runs[i], err) < 0)
			return -1;
	if (seek(a, a->head.copies, err) < 0)
		return -1;
	if (a->data_crc != a->head.data_crc)
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
