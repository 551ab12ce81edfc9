/* journal_snapshots.h - the rows of snapshots: each is written when its folder is whole. */
#pragma once

#include "node/journal/journal.h"

/* The order is written to disk: only ever add at the end. */
enum journal_kind {
	JOURNAL_SNAPSHOT, /* somebody's, or of a fork */
	JOURNAL_STEP,     /* of a build: the disk after one instruction, without a memory */
	JOURNAL_BUILD,    /* of a build: its end */
	JOURNAL_KINDS,
};

struct journal_snapshot {
	char id[NODE_ID_MAX + 1];
	char team[NODE_ID_MAX + 1];
	char base_id[NODE_ID_MAX + 1];                    /* the template at the bottom, warden's */
	char parent[NODE_ID_MAX + 1];                     /* of what its source was made */
	char source[NODE_ID_MAX + 1];                     /* the sandbox it was taken of */
	char name[NODE_ID_MAX + 1], tag[NODE_ID_MAX + 1]; /* name: may be empty */
	/* of its source: whoever wakes a copy proves with it that it is the same host */
	char control_token[NODE_ID_MAX + 1];
	char token[NODE_ID_MAX + 1];       /* of the request for it, see once.h; may be empty */
	uint64_t created_ns;               /* since 1970 */
	uint64_t memory_bytes, disk_bytes; /* that it takes of the disk, shared blocks too */
	uint32_t vcpus, memory_mib, disk_mib;
	uint32_t layers;    /* of its disk, above the template's */
	uint64_t base_sums; /* manifest_sums() of it: what those made of it differ from; 0: not
			     * known */
	uint32_t hidden; /* 1: nobody may ask for it; it goes with the last that was made of it */
	uint32_t kind;   /* enum journal_kind */
	/* JOURNAL_STEP: by which a later build finds it. JOURNAL_BUILD: the build's id. Else empty
	 */
	char key[NODE_ID_MAX + 1];
	char *known; /* what its source knew of names, JSON; NULL: nothing. Borrowed by calls */
	/* What was built into it, for those made of it: build/build_context.h; NULL: nothing. The
	 * same */
	char *context;
};

/* Insert or replace, durable. Failure (-1): on_done will not come. */
int journal_put_snapshot(struct journal *j, struct journal_write *w,
			 const struct journal_snapshot *row, journal_done_fn *on_done,
			 struct err *err) NODISCARD;
int journal_remove_snapshot(struct journal *j, struct journal_write *w, const char *id,
			    journal_done_fn *on_done, struct err *err) NODISCARD;

/* All, the oldest first; blocks (at start only). Odd ones as of journal_each(). */
typedef int journal_each_snapshot_fn(const struct journal_snapshot *row, void *context,
				     struct err *err);
int journal_each_snapshot(struct journal *j, journal_each_snapshot_fn *each, journal_odd_fn *odd,
			  void *context, struct err *err) NODISCARD;
