/* fuzz_pages.c - promises about a file of pages, and about the kernel's table of mappings.
 *
 * Input: a head, then its table. What the checksum of the head refuses is tried again with the
 * right one, as somebody who can compute it would.
 */
#include "copier/mapping.h"
#include "copier/pages.h"
#include "fuzz/must.h"

enum { MEMORY_PAGES = 4096 };

/* Every page named is one of the memory's, is named once, and finds its data within the file. */
static void must_fit(const struct pages_head *h, const struct pages_run *runs, uint64_t file_bytes)
{
	uint8_t seen[MEMORY_PAGES] = { 0 };
	uint64_t data = pages_table_at(h);

	MUST(h->copies <= (uint64_t)MEMORY_PAGES * PAGES_COPIES_MAX);
	for (uint64_t i = 0; i < h->runs; i++)
		for (uint64_t k = 0; k < runs[i].count; k++) {
			MUST(runs[i].first + k < MEMORY_PAGES);
			MUST(!seen[runs[i].first + k]++);
			if (!(runs[i].flags & PAGES_ZERO))
				MUST(PAGES_DATA_AT + (runs[i].copy + k + 1) * PAGES_BYTES <= data);
		}
	MUST(data + h->runs * sizeof(*runs) == file_bytes);
}

static void try_table(const struct pages_head *h, struct bytes table)
{
	uint64_t copies = h->copies < MEMORY_PAGES * PAGES_COPIES_MAX ? h->copies : 0;
	uint64_t file_bytes = PAGES_DATA_AT + copies * PAGES_BYTES + table.len;
	AUTO(auto_free) struct pages_run *runs = malloc(table.len + 1);
	struct err err = { 0 };

	memcpy(runs, table.ptr, table.len);
	if (pages_head_check(h, file_bytes, MEMORY_PAGES * PAGES_BYTES, &err) < 0 ||
	    pages_runs_check(h, runs, &err) < 0) {
		must_say_why(&err);
		return;
	}
	must_fit(h, runs, file_bytes);
}

static void try_maps(struct bytes text)
{
	static const struct mapping_file file = { 0xfd, 1, 1835 };
	const uint64_t bytes = MEMORY_PAGES * PAGES_BYTES;
	uint64_t next = 0;
	struct mappings m;
	struct err err = { 0 };

	if (mapping_parse(text, &file, bytes, &m, &err) < 0) {
		must_say_why(&err);
		return;
	}
	MUST(m.n <= MAPPINGS_MAX);
	for (size_t i = 0; i < m.n; i++) {
		MUST(m.all[i].offset == next && m.all[i].bytes > 0);
		next += m.all[i].bytes;
	}
	MUST(next == bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	struct pages_head h;

	try_maps(in);
	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	try_table(&h, bytes_tail(in, sizeof(h)));
	pages_head_seal(&h);
	try_table(&h, bytes_tail(in, sizeof(h)));
	return 0;
}
