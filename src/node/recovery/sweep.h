/* sweep.h - folders and rows, compared when node starts.
 *
 * A folder without a row goes to lost/ (lost.h), unless its owner wanted it gone: then it is
 * removed. A row without a folder stays: the folder may be on a disk that is not mounted yet, and
 * one that was set aside for want of that row comes back. What is saved and not described, by an
 * earlier version or on a full disk, is described. What lies in lost/ is looked at every hour, and
 * when it changed: it may be old, or in the way. It is old when a clock that went well for a while
 * says so, and a snapshot not while anything made of it is there.
 */
#pragma once

#include "node/files/lost.h"
#include "net/timer.h"
#include "node/journal/journal.h"

struct node;
struct sweep_job;

enum {
	SWEEP_MAX = 64 * 1024, /* folders without a row that one start looks at */
	SWEEP_EVERY_MS = 3600 * 1000,
	SWEEP_SOON_MS = 200,
	SWEEP_ROOM_MS = 1000, /* while disks are kept: is there room for anything else? */
	SWEEP_JUMP_S = 300,   /* a clock that is set by more did not know the time */
};

struct orphan { /* a folder without a row */
	char name[NODE_ID_MAX + 1];
	enum lost_kind kind;
	bool ended;  /* it did, or was never whole: goes, unless it is described */
	bool wished; /* somebody wanted that */
};

struct orphans {
	struct orphan *all;
	size_t n;
};

struct swept {
	size_t moved, removed, left; /* left: they could be neither, which was logged */
};

struct sweep_facts { /* who knows what of a folder; each may be asked at start only */
	bool (*has_row)(struct sweep_facts *f, enum lost_kind kind, const char *id);
	/* NODE_ALIVE: nobody knows. */
	enum node_reason (*why_ended)(struct sweep_facts *f, enum lost_kind kind, const char *id);
};

int orphans_find(struct orphans *s, int root, enum lost_kind kind, struct sweep_facts *f,
		 struct err *err) NODISCARD;
/* Blocks. One that cannot be moved stays where it is, whatever the reason. */
struct swept orphans_sweep(const struct orphans *s, int sandboxes, int snapshots, int lost,
			   uint64_t now_ns);
void orphans_done(struct orphans *s);

struct sweep {
	struct sweep_job *job; /* NULL: none under way */
	bool again;            /* when it is done */
	struct timer timer, room;
	struct rows_left *rows;   /* to be described; NULL: none */
	size_t n_lost, n_missing; /* as of the last look; missing: rows without a folder */
	uint64_t lost_bytes;
	/* Since when, in CLOCK_BOOTTIME, the wall clock goes as that does, so much ahead */
	uint64_t steady_ns;
	int64_t ahead_ns;
};

/* After everything was loaded. What it finds is dealt with on a thread. */
int sweep_open(struct node *n, struct err *err) NODISCARD;
void sweep_close(struct node *n);
void sweep_look(struct node *n); /* at what is lost, soon: it changed */
struct snapshot;
/* A disk is in lost/ now. What it was made of, or NULL, stays as long. */
void sweep_disk_kept(struct node *n, struct snapshot *made_of);
