/* pages.h - the file of pages: what of a VM's memory differs from the file it was mapped from.
 *
 *	0                 struct pages_head, then zeros
 *	PAGES_DATA_AT     copies of pages that are not zero, one after the other
 *	behind them       the table: struct pages_run, ascending, to the end of the file
 *
 * A page that was written again while it was being copied has several copies; the table names one.
 *
 * Numbers are the host's own. What reads such a file believes nothing: length, counts, order and
 * bounds are checked before anything is used, checksums while it is.
 */
#pragma once

#include <stdint.h>

#include "base/err.h"

#define PAGES_MAGIC "HOTCELLP"

enum {
	PAGES_VERSION = 2,
	PAGES_BYTES = 4096, /* of one page */
	PAGES_DATA_AT = 4096,
	PAGES_COPIES_MAX = 2,     /* of each page */
	PAGES_RUNS_MAX = 1 << 22, /* enough for 32 GiB of which every second page changed */
};

enum pages_flags {
	PAGES_ZERO = 1u << 0, /* all of them are zero; nothing of them is in the file */
};

struct pages_run {
	uint64_t first; /* the number of a page */
	uint32_t count;
	uint32_t flags;
	uint64_t copy; /* the number of its first page's copy, the others follow; 0 if zero */
};

struct pages_head {
	char magic[8];
	uint32_t version, page_bytes;
	uint64_t memory_bytes; /* of the VM */
	uint64_t copies;       /* of which so many pages are in use: */
	uint64_t runs, pages, zero_pages;
	uint32_t data_crc, runs_crc; /* CRC-32C */
	uint32_t base_crc;           /* CRC-32C of the memory they differ from; 0: not known */
	uint32_t head_crc;           /* of what stands before it; here in every version */
};

/* Complete a head: magic, version, its own checksum. */
void pages_head_seal(struct pages_head *h);

uint64_t pages_table_at(const struct pages_head *h);   /* of one that was checked */
uint64_t pages_file_bytes(const struct pages_head *h); /* the same */

/* Does it describe a file of so many bytes, for a VM with so much memory? ERR_INVALID: the file is
 * damaged or no file of pages; ERR_MISMATCH: of another version, or another VM's. */
int pages_head_check(const struct pages_head *h, uint64_t file_bytes, uint64_t memory_bytes,
		     struct err *err) NODISCARD;
/* Do they differ from a memory with this CRC-32C? 0, here or in the head: nobody knows, as of files
 * written before there was one. ERR_BASE_LOST: from another. */
int pages_base_check(const struct pages_head *h, uint32_t base_crc, struct err *err) NODISCARD;

/* All h->runs of them: ascending, none empty, none beyond the memory or the copies, and as many
 * pages as the head says. The head was checked. */
int pages_runs_check(const struct pages_head *h, const struct pages_run *runs,
		     struct err *err) NODISCARD;

/* The zero ones, then the others in the order of their copies: so the file is read from its
 * beginning to its end. */
void pages_runs_sort(struct pages_run *runs, uint64_t n);
