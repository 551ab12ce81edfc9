/* snapshots.h - what sandboxes can be made of besides the template.
 *
 *	data_dir/snapshots/ID/memory          all of it, in one file; nobody writes it any more
 *	                      state           of the devices
 *	                      layer1, ...     qcow2: its disk, from the template's upwards. What an
 *	                                      earlier snapshot brought is the same file
 *	                      manifest        what it was made with, and what its files are
 *	                      row             its row, see row_file.h
 *	data_dir/snapshots/.new-ID            being made; no node looks at another's
 *
 * A folder takes its name when it is whole and synced, then its row is written: a row has a folder.
 * Each is whole by itself: what it was made from may be removed.
 */
#pragma once

#include "node/journal/journal_snapshots.h"
#include "node/life/sandbox.h"

enum {
	SNAPSHOTS_MAX = 10 * 1000,
	SNAPSHOTS_BUCKETS = 2048,
	SNAPSHOTS_PAGE = 128, /* of one list */
	SNAPSHOT_ID_LENGTH = 20,
	SNAPSHOT_USERS_TOLD = 8,
};

#define SNAPSHOT_TAG "default" /* when none was given */

struct build;
struct snapshot {
	struct node *node;
	struct journal_snapshot row;
	size_t users;      /* sandboxes made of it, and whoever wants to make one */
	size_t readers;    /* of those: snapshots that are being made, and read its files */
	size_t pooled;     /* of those: VMs that are nobody's, and go when it does */
	struct pool *pool; /* pools.h; NULL: none */
	bool verified;     /* its files were read and are what its manifest says */
	bool going;        /* it is being removed */
	bool unfit;        /* its memory cannot be loaded here, see build/refreeze.h */
	uint64_t used_ns;  /* JOURNAL_STEP: when it was last made or found; only since node began */
	bool missing;      /* its folder was not there when it was looked for */
	bool lost;         /* what lies in lost/ was made of it, or may be: not looked at yet */

	bool cached;        /* its files may be in the page cache; */
	uint64_t cached_ms; /* last in use then, by the loop's clock; 0: not looked at yet */

	/* For operators: on the disk, as of the last look (catalog_sizes.h); sandboxes of it that
	 * run, as of the last list (operator_view.c) */
	uint64_t own_bytes, shared_bytes;
	size_t running;

	struct journal_write write;
	struct door_asked *asked; /* who wants it gone; NULL: nobody */
	struct build *build;      /* it came of this one, see catalog.h; NULL: of none */
	struct snapshot *next, **prev, *bucket_next;
};

struct snapshots {
	struct snapshot *all; /* the newest first */
	struct snapshot *by_id[SNAPSHOTS_BUCKETS];
	size_t n;
	bool closed; /* at node's own end: nothing is removed any more */
};

/* At start, before sandboxes are loaded. */
int snapshots_load(struct node *n, struct err *err) NODISCARD;
/* It was looked at what is lost: what nobody needs any more is removed. */
struct lost_list;
void snapshots_sweep(struct node *n, const struct lost_list *lost);
void snapshots_close(struct node *n);

/* Of `team`, by its id or its name; none of a build; `tag` may be empty. NULL: *err; ERR_NO_FILES:
 * it has a row and no folder, which may be on a disk that is not there yet. */
struct snapshot *snapshots_find(struct node *n, const char *team, const char *name, const char *tag,
				struct err *err);
struct snapshot *snapshots_by_id(const struct node *n, const char *id); /* NULL: none */
bool snapshots_need(const struct node *n, const char *base_id); /* is any made on this template? */

struct snapshot *snapshot_hold(struct snapshot *p);
void snapshot_release(struct snapshot *p); /* NULL is fine. May remove it, if it is hidden */
/* Nobody may ask for it any more: it goes with the last that was made of it, or now. */
void snapshot_hide(struct snapshot *p);
/* Row and folder go. -1: something uses it, or it is not known whether: *err. */
int snapshot_remove(struct snapshot *p, struct err *err) NODISCARD;
/* A new one, in the table; its row is durable. NULL: no memory. */
struct snapshot *snapshots_add(struct node *n, const struct journal_snapshot *row);
/* It takes the name of an earlier one, which is then found by nobody. */
void snapshots_rename_older(struct snapshot *newest);
/* ERR_NO_FILES: they are not there. */
bool snapshot_has_files(struct snapshot *p, struct err *err);

/* Of the request that was sent with it; NULL: none. See once.h. */
struct snapshot *snapshots_by_token(const struct node *n, const char *token);
void snapshots_undo(struct node *n, const char *token);               /* nobody was told of it */
void snapshot_answer(const struct snapshot *p, struct door_asked *a); /* what it is */

struct json_t *snapshot_why(const struct snapshot *p); /* what keeps it, in words: an array */

verb_fn snapshots_list;
verb_fn snapshots_delete;
