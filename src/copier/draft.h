/* draft.h - what was copied of a VM's memory so far, and which copy of each page is the last.
 *
 * A pass copies every page that differs from the template and from its last copy, behind what was
 * copied before. The first may run beside the VM; what changes meanwhile is found by the next. The
 * last is made while the VM stands still: then the copies are its memory.
 */
#pragma once

#include "copier/crew.h"
#include "copier/mapping.h"
#include "copier/work.h"

enum { DRAFT_UNIT_PAGES = 2048 }; /* of memory, looked at by one of the crew at once */

/* Of each page: as in the template, zero, or the number of its copy + COPY_AT. */
enum { COPY_NONE, COPY_ZERO, COPY_AT };

struct draft {
	struct work *w;
	struct mappings found;
	const uint8_t *was; /* the memory as the VM found it: all of the file, mapped */
	uint64_t pages;     /* of the memory */
	uint32_t *last;     /* for each of them */
	uint64_t copies;    /* so far */
	size_t filled;      /* bytes of w->piece, the newest of them, that wait to be written */
	uint32_t crc;       /* of all that were written */
	uint64_t started;   /* bytes of the file that the disk was told of */
	unsigned int passes;
};

int draft_open(struct draft *d, struct work *w, struct err *err) NODISCARD;
void draft_close(struct draft *d);

/* At most PAGES_COPIES_MAX times. After it all copies are in the file, unsynced. */
int draft_pass(struct draft *d, struct err *err) NODISCARD;
