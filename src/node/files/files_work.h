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

/* snapshot_work.c: the verbs SNAP_*. */
int snapshot_work_do(struct files_work *w, struct err *err) NODISCARD;
/* What is above the template: state, memory, layers, each looked at first. */
int snapshot_work_open(struct files_work *w, bool with_state, struct err *err) NODISCARD;
int files_work_mark(const struct files_work *w, struct err *err) NODISCARD; /* FILES_MARK */
/* Of all of a file, which is read on from its beginning afterwards. */
int files_work_sum(int fd, struct checksum *ret, struct err *err) NODISCARD;
int files_work_crc(int fd, uint32_t *ret, struct err *err) NODISCARD; /* of a device state */
/* files_disk.c: the sum of a disk; 0: it has more than FILES_DISK_SUM_MAX bytes, and none. */
enum { FILES_DISK_SUM_MAX = 1024 * 1024 * 1024 }; /* allocated: a second or a few */
int files_disk_sum(int disk, uint32_t *ret, struct err *err) NODISCARD;
int files_disk_check(int disk, uint32_t want, struct err *err) NODISCARD;   /* 0: it has none */
int files_disk_read(const struct files_work *w, struct err *err) NODISCARD; /* FILES_DISK */
/* files_base.c: the folder of the template; ERR_BASE_LOST: it is not there. */
int files_work_template(struct files_work *w, struct err *err) NODISCARD;
/* Is it what `sums` says, and are the files whole that are needed? */
enum files_need {                                                 /* bits */
		  FILES_NEED_KERNEL = 1u << MANIFEST_KERNEL_FILE, /* to boot */
		  FILES_NEED_DISK = 1u << MANIFEST_DISK_FILE,
		  FILES_NEED_MEMORY = 1u << MANIFEST_MEMORY_FILE,
};
int files_base_check(struct files_work *w, uint64_t sums, uint32_t need, struct err *err) NODISCARD;
int files_base_read(struct files_work *w, struct err *err) NODISCARD; /* FILES_BASE */
/* Is a file as long as `want` says, and if it is read whole, what it says? */
int files_work_compare(int fd, const struct checksum *want, const char *name, bool whole,
		       struct err *err) NODISCARD;
int files_work_check_host(const struct files_work *w, int folder, struct err *err) NODISCARD;
