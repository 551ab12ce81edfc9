/* sandbox_files.h - the folder of each sandbox: what survives its VM.
 *
 *	data_dir/sandboxes/ID/disk          qcow2: all it wrote, on top of its template's disk
 *	                      pages, state  while it is paused with its memory
 *	                      row           the same time: its row, see row_file.h
 *	                      blank         of one that booted with a memory of its own size: zeros
 *	                      *.new         being written; never looked at by another node
 *	                      saving        its guest may be frozen: the next node lets it go on
 *
 * A folder is made after its row and removed before it: of one without a row sweep.h decides. All
 * of it happens on threads, in the order asked for each sandbox, a few sandboxes at once.
 */
#pragma once

#include "net/timer.h"
#include "node/protocol.h"
#include "vm/manifest_check.h"
#include "warden/protocol.h"

#define FILES_MARK  "saving" /* a file of a sandbox from before its freeze until it goes on */
#define FILES_BLANK "blank"  /* see files_order.blank_mib */
enum {
	FILES_AT_ONCE = 8,      /* threads that somebody may wait for */
	FILES_FREEING_MAX = 64, /* threads that free the blocks of what was removed */
	FILES_JOBS_MAX = 16384, /* waiting for one; more are refused */
	FILES_FOLDER_MAX = 512,
};

enum files_verb {
	FILES_MAKE, /* the folder and an empty disk -> disk */
	FILES_SAVE, /* is there room? -> memory of the template, empty pages.new, state.new */
	FILES_KEEP, /* its disk is synced, what was saved takes its name, for good -> disk_crc */
	FILES_LOAD, /* disk, and with its memory: memory of the template, pages, state, checked */
	FILES_DISK, /* nothing but: is its disk what disk_crc says? Without memory LOAD asks that */
	FILES_RUNS, /* it runs: what was saved is of no use any more. A journal of before may say so
		     * of one that was paused since, which is described: then nothing goes */
	FILES_PAUSED, /* it is paused: what was being saved is of no use any more */
	FILES_REMOVE, /* all of it; `lost` and described, or with `row`: to lost/, see lost.h */
	/* Of a snapshot that is made, `into`: */
	FILES_SNAP_OPEN,   /* is there room? its folder; as SAVE, and an empty disk */
	FILES_SNAP_PAUSED, /* its folder, with all that a paused sandbox has; checks its sums */
	FILES_SNAP_JOIN,   /* one memory, all layers, a manifest; synced */
	FILES_SNAP_KEEP,   /* takes its name, for good -> memory_bytes, disk_bytes */
	FILES_SNAP_DROP,   /* gone, made or half made */
	FILES_SNAP_WARM,   /* the first need_mib of its memory are read into the page cache */
	FILES_SNAP_COOL,   /* its memory and the disk that is its own leave the page cache */
	FILES_BASE_COOL,   /* a template leaves the page cache. `id`: its own */
	FILES_BASE, /* what sandboxes need of a template is read; nothing else. `id`: its own */
};

enum files_base {                    /* what was found of the template below */
		  FILES_BASE_UNREAD, /* not all of it was read */
		  FILES_BASE_READ,   /* `base_bad` says which files are damaged */
		  FILES_BASE_ABSENT,
};

struct files_order {
	enum files_verb verb;
	char id[NODE_ID_MAX + 1], template_id[NODE_ID_MAX + 1];
	char snapshot_id[NODE_ID_MAX + 1]; /* what it was made of, above the template; or empty */
	char into[NODE_ID_MAX + 1];        /* SNAP_*: the snapshot that is made */
	uint32_t layer;                    /* SNAP_*: the number of its own */
	bool verify;                       /* MAKE, LOAD: read all of the snapshot's files */
	bool lost;                         /* REMOVE: nobody wanted it gone */
	char *row;   /* REMOVE: it lost its VM, lost_disks.h; copied by files_ask(). Or NULL */
	bool memory; /* MAKE, SAVE, KEEP, LOAD, SNAP_*: not the disk alone */
	/* Its memory was mapped from zeros, so much: all that is said here of the memory of what it
	 * was made of is said of a file of zeros in its folder then. 0: it was not */
	uint32_t blank_mib;
	uint64_t need_mib; /* SAVE, SNAP_OPEN: what its memory takes at most; SNAP_WARM */
	uint32_t state_crc, disk_crc, generation; /* LOAD, DISK, SNAP_PAUSED: as its row knows */
	struct manifest_facts here;               /* MAKE, LOAD with a memory: what it must fit */
	bool booted;                              /* on `host`: no manifest knows */
	struct manifest_facts host;
	struct checksum kernel; /* with `booted`: which, of version host.kernel_version; length 0:
				 * its template's */
	/* Of the template below, by MAKE of a snapshot, LOAD, SNAP_OPEN, SNAP_PAUSED and SNAP_JOIN.
	 * ERR_BASE_LOST: it is not there, another, or a file that is needed is damaged */
	uint64_t base_sums; /* of what it was made of, as its row says; 0: not known */
	bool read_base;     /* it was not yet: read its files */
	uint32_t base_bad;  /* else: which are damaged, bits of enum manifest_file */
};

struct files_opened { /* -1: not opened. The callee takes what it wants, the rest is closed */
	int disk, pages, memory, state;
	int layers[WARDEN_LAYERS_MAX]; /* of the snapshot; so many: */
	size_t n_layers;
	uint64_t memory_bytes, disk_bytes; /* SNAP_KEEP */
	/* Also of what failed: */
	uint64_t base_sums; /* found: of what it was made of; JOIN: of what was made. 0: not read */
	enum files_base base;
	uint32_t base_bad, disk_crc;          /* disk_crc: KEEP; 0: too large to be read */
	bool set_aside;                       /* REMOVE: it was saved, and is in lost/ */
	char base_vmm[MANIFEST_TEXT_MAX + 1]; /* BASE_READ: the VMM it was made with */
};
#define FILES_NONE (struct files_opened){ .disk = -1, .pages = -1, .memory = -1, .state = -1 }
void files_opened_close(struct files_opened *o);
/* For RESTORE: what is above the template, in its order behind the overlay; taken. How many. */
size_t files_opened_give(struct files_opened *o, int *fds);
struct files;
struct files_job;
struct files_call;
typedef void files_done_fn(struct files_call *c, struct files_opened *got, const struct err *err);
struct files_call { /* embedded by the caller; all zero: nothing under way */
	/* Once, from the loop. ERR_NO_SPACE: no room. ERR_MISMATCH: saved by another host.
	 * ERR_BASE_LOST: what it differs from is not what it was. */
	files_done_fn *on_done;
	struct files_job *job; /* NULL: not under way */
};

/* Below `data_dir`, which exists. */
int files_open(struct loop *l, const char *data_dir, const char *state_dir, uint64_t reserve_mib,
	       struct files **ret, struct err *err) NODISCARD;
int files_root(const struct files *f);      /* data_dir/sandboxes; borrowed */
int files_snapshots(const struct files *f); /* data_dir/snapshots; the same */
typedef bool files_keep_fn(const char *id, void *context);
/* Has every folder a row, and lies nothing among what was lost? False also when nobody can say. */
bool files_all_known(const struct files *f, files_keep_fn *keep, void *context);
bool files_has_snapshot(const struct files *f, const char *id);
/* Was it about to be saved or copied? Then its guest may be frozen although its VM runs. */
bool files_is_marked(const struct files *f, const char *id);
void files_close(struct files *f); /* no callback follows; NULL is fine */

/* Failure (-1): on_done will not come. `c` NULL: a failure is only logged. */
int files_ask(struct files *f, struct files_call *c, const struct files_order *o,
	      files_done_fn *on_done, struct err *err) NODISCARD;
void files_cancel(struct files_call *c); /* it is done all the same, unless it was not begun */

/* Is there so much, besides the reserve? Does not wait. ERR_NO_SPACE: no, and in which folder. */
int files_room(const struct files *f, uint64_t need_mib, struct err *err) NODISCARD;
/* A failure for want of room, of whoever wrote there, says where. */
void files_name_room(const struct files *f, struct err *err);
