/* sandbox.h - one sandbox of this host, from a row in the journal to nothing.
 *
 *	create:  NOTED -> SLOT -> STARTING -> RESTORING -> WAITING -> NAMING -> SETTLING -> RUNNING
 *	pause:   RUNNING -> PAUSING -> PARKING -> PAUSED     could not be saved: back to RUNNING
 *	resume:  PAUSED -> SLOT -> STARTING -> RESTORING -> WAKING -> RUNNING
 *	         before WAKING: could not be resumed, PARKING -> PAUSED
 *	any of them -> ENDING -> (freed)
 * Up to WAITING it belongs to nobody, and whoever comes first gets it: the pool is a head start.
 * After a restart of node RUNNING, PARKING and WAKING are entered straight from the journal.
 */
#pragma once

#include "node/recovery/absence.h"
#include "node/links/guest_sockets.h"
#include "node/journal/journal.h"
#include "node/life/lease.h"
#include "node/life/monitor.h"
#include "node/network/network.h"
#include "node/record/record.h"
#include "node/files/sandbox_files.h"
#include "node/network/slots.h"
#include "vm/agent_identity.h"
#include "vm/restore.h"

struct create;
struct pool;
struct team;

enum {
	SANDBOX_PATH_MAX = 512,
	SANDBOX_NAME_LENGTH = 20, /* random characters of an id: 103 bits */
	SANDBOX_REHEARSALS = 3,   /* of the identity: an emulator translates hot code in steps */
};

enum sandbox_state {
	SANDBOX_NOTED,     /* its row is being written */
	SANDBOX_SLOT,      /* waits for a network */
	SANDBOX_STARTING,  /* warden starts QEMU */
	SANDBOX_RESTORING, /* QEMU loads it */
	SANDBOX_WAITING,   /* it runs, and lacks an identity only */
	SANDBOX_NAMING,    /* it is told who it is */
	SANDBOX_SETTLING,  /* its row is being written: running */
	SANDBOX_RUNNING,
	SANDBOX_PAUSING, /* it waits for its turn, is being saved, or goes on after a save failed */
	SANDBOX_PARKING, /* it is paused; a VM it may still have is being removed */
	SANDBOX_PAUSED,
	SANDBOX_WAKING, /* resumed: it may have run, so what was saved is of no use any more */
	SANDBOX_ENDING,
	SANDBOX_STATES,
};
struct sandbox;
typedef void sandbox_stopped_fn(struct sandbox *s);
struct sandbox {
	struct node *node;
	enum sandbox_state state;
	struct node_sandbox info;      /* all zero but id and sizes until it is claimed */
	char base_id[NODE_ID_MAX + 1]; /* its template, or the one below its snapshot */
	struct snapshot *snapshot;     /* held; NULL: made of the template itself */
	char control_token[NODE_ID_MAX + 1];
	char machine_id[NODE_ID_MAX + 1], boot_id[NODE_ID_MAX + 1];
	char *text; /* JSON, without envVars; NULL: none */
	char *env;  /* envVars as JSON, for when it boots from its disk; NULL: none */
	struct manifest_facts *host; /* host_text.h; NULL: what it was made of says it */
	struct checksum kernel; /* that it booted, of host->kernel_version; length 0: not known, its
				 * template's or another node's */
	uint32_t pages_crc, state_crc, disk_crc; /* of what is saved; the disk's 0: not known */
	uint64_t saved_bytes, base_sums; /* 0: its disk alone; manifest_sums() of its source */
	struct lease lease; /* until when it runs; info.end_ns is the same, for people */
	struct agent_identity identity;
	char key_id[NODE_ID_MAX + 1], token[NODE_ID_MAX + 1]; /* by which it was made, see once.h */
	/* In logs: of the create that it was begun for, then of the one that got it; "": of none */
	char request[NODE_REQUEST_MAX + 1];
	struct repeat *repeat;   /* idempotency.h; NULL: its create had no name */
	struct create *create;   /* whose it becomes; NULL: nobody's, or done */
	struct builder *builder; /* whose it is, of one with NODE_BUILDER; NULL: nobody's */
	uint32_t slot, rehearsals;
	bool for_pool, started; /* nobody waited when it was begun; warden may have its VM */
	struct pool
		*pool; /* nobody's: where it waits, or will. NULL: begun for a create, or done */
	uint64_t pool_mib;        /* what it is counted with in pools.h; 0: it is not */
	bool pooled, leaves_pool; /* its snapshot counts it so; it ends, and is still counted */
	bool blank;               /* its memory was mapped from zeros: files_order.blank_mib */
	bool boots, marked;       /* of the disk alone; maybe frozen, see files_is_marked() */
	bool awaits_look;         /* adopted, PARKING: has it a VM? */
	uint64_t seen, facts; /* by which look at warden's list; by which facts it was checked */
	struct absent absent;
	struct journal_write write;
	struct files_call files;
	int disk;                  /* until warden has it; -1: none */
	struct files_opened below; /* of its snapshot, the same */
	struct slot_wait slot_wait;
	struct link_call call;
	struct link_call ask; /* vm_stop.c */
	struct guest_sockets socket;
	struct network network;
	struct machine machine;
	struct machine_user machine_user;
	struct restore restore;
	struct restore_user restore_user;
	struct timer timer; /* RUNNING: the deadline. PARKING, ENDING: when to try again */
	sandbox_stopped_fn *on_stopped;                     /* vm_stop.c: it has no VM any more */
	struct kill_wait *killers;                          /* asked for its end and wait for it */
	struct deferred_request *deferred, **deferred_last; /* in the order they came, so many: */
	size_t n_deferred;
	struct pausing *pausing;   /* pause.c */
	struct taking *copying;    /* snapshot_take.c: QEMU still copies its disk; or NULL */
	uint64_t pause_after_ns;   /* it could not be paused: not again by itself before */
	struct resuming *resuming; /* resume.c: from the wish to the answer */
	struct restart_stalled *restarting; /* restart_stalled.c */
	struct monitor monitor;
	struct record record;
	char qmp_path[SANDBOX_PATH_MAX];
	struct sandbox *bucket_next, *next, **prev; /* sandbox_table.h */
	struct team *team;
	struct sandbox *pool_next;              /* WAITING: the one that became ready after it */
	struct sandbox *tidy_next, **tidy_prev; /* tidy.h; tidy_prev NULL: in no list */
};
