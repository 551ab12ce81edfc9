/* disk_copy.h - the disk of a machine as it is at one instant, in a file of its own, while the
 * guest goes on.
 *
 *	open -> begin -> finish                 each answered once, one at a time
 *
 * `begin` is the instant: it takes no longer for a large disk, for QEMU copies what the guest wrote
 * above the layers below (blockdev-backup, sync=top) behind it, old contents first. `finish` waits
 * for that. With `flat` it then adds what the layers hold (block-stream), so that the file needs
 * nothing but the template's disk below.
 *
 * The file must be an empty qcow2 of the disk's size. It is whole when `finish` succeeded, and not
 * synced. What an earlier node left half done in the same QEMU is removed by `open`.
 */
#pragma once

#include "net/timer.h"
#include "vm/machine.h"

enum {
	DISK_COPY_LOOK_MIN_MS =
		2, /* how soon it is looked at again; twice as late each time, up to */
	DISK_COPY_LOOK_MAX_MS = 50,
	DISK_COPY_SILENT_MS = MACHINE_COMMAND_MS + 1000,
	DISK_COPY_MAX_MS = 30 * 60 * 1000, /* for all of it: a slow disk, a large one */
	DISK_COPY_TRIES = 40,              /* to remove what was left */
	DISK_COPY_WORKERS = 4,             /* of QEMU, with 1 MiB each: its memory is limited */
};

struct disk_copy;
typedef void disk_copy_done_fn(struct disk_copy *d, const struct err *err);
struct disk_copy {                  /* embedded by the owner; all zero: nothing under way */
	disk_copy_done_fn *on_done; /* of the current step */
	void *owner;                /* its own */
	struct machine *machine;
	struct qmp_call call;
	struct timer look;
	uint64_t look_ms, until_ms;
	int target;      /* borrowed, while it is opened; else -1 */
	uint32_t layers; /* below the disk, above the template's */
	unsigned int at, tries;
	bool flat;
	struct err failed; /* what remains is tidied up first */
};

/* `layers`: how many the machine was started with. `target` is borrowed until on_done. */
int disk_copy_open(struct disk_copy *d, struct machine *m, int target, uint32_t layers,
		   disk_copy_done_fn *on_done, struct err *err) NODISCARD;
/* The guest should stand still, or what is copied is of an instant that nobody knows. */
int disk_copy_begin(struct disk_copy *d, disk_copy_done_fn *on_done, struct err *err) NODISCARD;
/* Looked at after a moment: what the caller asks of QEMU meanwhile comes first. */
void disk_copy_finish(struct disk_copy *d, bool flat, disk_copy_done_fn *on_done);
/* No callback follows. While QEMU is to answer, the machine is closed. What was begun goes on in
 * QEMU, for nobody. */
void disk_copy_cancel(struct disk_copy *d);
