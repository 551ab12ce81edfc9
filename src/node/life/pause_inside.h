/* pause_inside.h - what pause.c, pause_durable.c and pause_copy.c share; nobody else includes it.
 */
#pragma once

#include "node/node.h"
#include "node/life/pause.h"
#include "node/life/snapshot_take.h"
#include "vm/disk_copy.h"
#include "vm/save.h"
#include "vm/thaw.h"

struct pausing {
	struct sandbox *sandbox;
	struct door_asked *asked; /* NULL: nobody, its time is over */
	bool memory;
	struct turn turn;
	struct timer link; /* until warden is there */
	uint64_t link_until_ms;
	struct files_call files;
	int control; /* our end of the copier's socket; -1: none */
	struct warden_call call;
	struct guest_sockets sockets;
	struct save save;
	struct save_user save_user;
	struct save_result result;
	struct disk_copy *disk;     /* with `taking`, until its instant: then the taking's */
	struct files_opened opened; /* with `taking`, until the copier has them */
	struct taking *taking;      /* it is to be copied, and goes on. NULL: paused, or copied */
	int thaw_socket;            /* to let it go on; -1: none */
	struct thaw thaw;
	struct agent_identity identity; /* for the thaw */
	bool begun, copier;             /* the guest may stand still; it is there */
	bool synced, kept;              /* durable: its memory; its disk and its names */
	uint32_t disk_crc;              /* with `kept` */
	uint64_t end_ns, stopped_ns;
	uint64_t asked_ns, begun_ns, copier_ns, copied_ns, synced_ns, kept_ns; /* when */
};

/* pause.c: it waits for its turn from here on. */
struct pausing *pause_start(struct sandbox *s, struct err *err) NODISCARD;
void pause_fail(struct pausing *p, const struct err *why);
void pause_over(struct pausing *p); /* let go of all it has */

/* pause_durable.c: its disk and its names, in the meantime (false: the pause has failed); what was
 * copied of its memory is synced. */
bool pause_keep(struct pausing *p);
void pause_synced(struct pausing *p);

void pause_start_copier(struct pausing *p, struct files_opened *got);

/* pause_copy.c, of one with p->taking: files are there; its memory is copied; something failed. */
void pause_copy_open(struct pausing *p, struct files_opened *got);
void pause_copy_disk(struct pausing *p);
void pause_copy_close(struct pausing *p); /* fine when there is nothing */
void pause_copy_failed(struct pausing *p, const struct err *why);
