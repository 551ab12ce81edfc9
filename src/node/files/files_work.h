/* files_work.h - one job with a sandbox's files, as its thread does it. */
#pragma once

#include "node/files/files_held.h"
#include "node/files/sandbox_files.h"
#include "vm/checksum.h"
#include "vm/work.h"

struct files_work { /* owned by one thread at a time */
	struct files_order order;
	struct files_opened opened;
	struct files_held held; /* of what was removed: the thread's alone */
	int root, snapshots;    /* descriptors of its own; -1: not opened yet */
	char state_dir[FILES_FOLDER_MAX];
	uint64_t reserve_mib;
};

/* A job that waits has no descriptors: there may be thousands. `o->row` is taken. */
void files_work_make(struct files_work *w, const struct files_order *o, const char *state_dir,
		     uint64_t reserve_mib);
/* Before it is done. */
int files_work_open(struct files_work *w, int root, int snapshots, struct err *err) NODISCARD;
int files_work_do(struct files_work *w, struct err *err) NODISCARD; /* blocks */
void files_work_after(struct files_work *w); /* blocks: what nobody need wait for */
void files_work_done(struct files_work *w);

int files_work_room(int root, uint64_t needed_mib, struct err *err) NODISCARD;
const char *files_verb_name(enum files_verb v); /* "make its folder" */

int files_work_mark(const struct files_work *w, struct err *err) NODISCARD; /* FILES_MARK */
/* Of a sandbox whose memory is mapped from zeros: a file of them in its folder, made when it is not
 * there, and in the place of a device state something that nobody reads. */
int files_work_blank(struct files_work *w, struct err *err) NODISCARD;
/* Of all of a file, which is read on from its beginning afterwards. */
int files_work_sum(int fd, struct checksum *ret, struct err *err) NODISCARD;
int files_work_crc(int fd, uint32_t *ret, struct err *err) NODISCARD; /* of a device state */
/* Is a file as long as `want` says, and if it is read whole, what it says? */
int files_work_compare(int fd, const struct checksum *want, const char *name, bool whole,
		       struct err *err) NODISCARD;
int files_work_check_host(const struct files_work *w, int folder, struct err *err) NODISCARD;
