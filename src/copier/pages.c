/* pages.c - see pages.h. Pure: the bytes are somebody else's to read and write. */
#include "copier/pages.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "base/crc32c.h"

static_assert(sizeof(struct pages_run) == 24, "no padding");
static_assert(sizeof(struct pages_head) == 72, "no padding");

static uint32_t head_crc(const struct pages_head *h)
{
	return crc32c(0,
		      (struct bytes){ (const uint8_t *)h, offsetof(struct pages_head, head_crc) });
}

void pages_head_seal(struct pages_head *h)
{
	memcpy(h->magic, PAGES_MAGIC, sizeof(h->magic));
	h->version = PAGES_VERSION;
	h->page_bytes = PAGES_BYTES;
	h->head_crc = head_crc(h);
}

uint64_t pages_table_at(const struct pages_head *h)
{
	return PAGES_DATA_AT + h->copies * PAGES_BYTES;
}

uint64_t pages_file_bytes(const struct pages_head *h)
{
	return pages_table_at(h) + h->runs * sizeof(struct pages_run);
}

static int check_counts(const struct pages_head *h, uint64_t file_bytes, struct err *err)
{
	uint64_t most = h->memory_bytes / PAGES_BYTES;

	/* each bounded by itself first: sums of what was not cannot be trusted */
	if (h->pages > most || h->zero_pages > most || h->pages + h->zero_pages > most)
		return err_set(err, ERR_INVALID, 0, "more pages than memory");
	if (h->copies < h->pages || h->copies > most * PAGES_COPIES_MAX)
		return err_set(err, ERR_INVALID, 0, "%lu copies of %lu pages", h->copies, h->pages);
	if (h->runs > PAGES_RUNS_MAX || h->runs > h->pages + h->zero_pages)
		return err_set(err, ERR_INVALID, 0, "more runs than pages");
	if (pages_file_bytes(h) != file_bytes)
		return err_set(err, ERR_INVALID, 0, "%lu bytes, the head says %lu", file_bytes,
			       pages_file_bytes(h));
	return 0;
}

int pages_head_check(const struct pages_head *h, uint64_t file_bytes, uint64_t memory_bytes,
		     struct err *err)
{
	if (memcmp(h->magic, PAGES_MAGIC, sizeof(h->magic)) != 0)
		return err_set(err, ERR_INVALID, 0, "not a file of pages");
	if (h->head_crc != head_crc(h))
		return err_set(err, ERR_INVALID, 0, "the head is damaged");
	if (h->version != PAGES_VERSION || h->page_bytes != PAGES_BYTES)
		return err_set(err, ERR_MISMATCH, 0, "pages of version %u, %u bytes each",
			       h->version, h->page_bytes);
	if (h->memory_bytes != memory_bytes || memory_bytes % PAGES_BYTES != 0)
		return err_set(err, ERR_MISMATCH, 0, "pages of a VM with %lu bytes, this has %lu",
			       h->memory_bytes, memory_bytes);
	return check_counts(h, file_bytes, err);
}

int pages_base_check(const struct pages_head *h, uint32_t base_crc, struct err *err)
{
	if (h->base_crc == 0 || base_crc == 0 || h->base_crc == base_crc)
		return 0;
	return err_set(err, ERR_BASE_LOST, 0,
		       "pages of another template: they differ from a memory with CRC %08x, this "
		       "one has %08x",
		       h->base_crc, base_crc);
}

int pages_runs_check(const struct pages_head *h, const struct pages_run *runs, struct err *err)
{
	uint64_t most = h->memory_bytes / PAGES_BYTES, next = 0, pages = 0, zero = 0;

	for (uint64_t i = 0; i < h->runs; i++) {
		const struct pages_run *r = &runs[i];

		if (r->count == 0 || (r->flags & ~(uint32_t)PAGES_ZERO))
			return err_set(err, ERR_INVALID, 0, "run %lu is empty or unknown", i);
		if (r->flags & PAGES_ZERO ? r->copy != 0
					  : r->copy > h->copies || r->count > h->copies - r->copy)
			return err_set(err, ERR_INVALID, 0, "run %lu has no copy", i);
		if (r->first < next || r->first > most || r->count > most - r->first)
			return err_set(err, ERR_INVALID, 0, "run %lu is out of order or bounds", i);
		next = r->first + r->count;
		*(r->flags & PAGES_ZERO ? &zero : &pages) += r->count;
	}
	if (pages != h->pages || zero != h->zero_pages)
		return err_set(err, ERR_INVALID, 0, "%lu and %lu pages, the head says %lu and %lu",
			       pages, zero, h->pages, h->zero_pages);
	return 0;
}

static int by_copy(const void *a, const void *b)
{
	const struct pages_run *left = a, *right = b;

	if ((left->flags ^ right->flags) & PAGES_ZERO)
		return left->flags & PAGES_ZERO ? -1 : 1;
	return (left->copy > right->copy) - (left->copy < right->copy);
}

void pages_runs_sort(struct pages_run *runs, uint64_t n)
{
	qsort(runs, n, sizeof(*runs), by_copy);
}
