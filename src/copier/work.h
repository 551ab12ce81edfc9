/* work.h - what a copier works with, and moving bytes: all of them or none. */
#pragma once

#include "copier/crew.h"
#include "copier/mapping.h"
#include "copier/protocol.h"

enum { WORK_PIECE = 1024 * 1024 }; /* moved at once, in bytes */

struct draft;

struct work {
	int control, pages, memory, state; /* node's; see enum copier_fd */
	int mem, maps, pagemap, saved;     /* the VM's; see enum copier_number */
	struct mapping_file file;          /* `memory`, by its name in maps */
	uint32_t base_crc;                 /* of `memory`, as node says; 0: not known */
	struct copier_reply done;          /* of the last copy: what COPIER_SYNC compares with */
	uint8_t *piece, *other;            /* WORK_PIECE bytes each */
	struct draft *draft;               /* NULL: nothing is copied yet; see draft.h */
	struct crew *crew;                 /* may be NULL */
};

/* What was saved is on the disk, and reads as it was written. Fills in the figures of *ret; took_us
 * is the caller's: so do those of save.h and apply.h. */
int work_sync(struct work *w, struct copier_reply *ret, struct err *err) NODISCARD;

/* --- shared by all of them ----------------------------------------------------------------- */

int work_memory_bytes(const struct work *w, uint64_t *ret, struct err *err) NODISCARD;
int work_read(int fd, void *to, size_t n, uint64_t at, struct err *err) NODISCARD; /* all n */
int work_write(int fd, const void *from, size_t n, uint64_t at, struct err *err) NODISCARD;
int work_go_on(const struct work *w, struct err *err) NODISCARD; /* fails when node hung up */

/* CRC-32C of a followed by b, which is n bytes long. */
uint32_t work_crc_join(uint32_t a, uint32_t b, uint64_t n);
