/* rebuild.h - a journal made again from what lies beside the data: see row_file.h. */
#pragma once

#include "node/journal/journal_db.h"
#include "node/journal/journal_snapshots.h"

struct rebuilt {
	size_t sandboxes, snapshots, templates, builds; /* brought back */
	size_t unreadable;  /* a description is there and cannot be used */
	size_t undescribed; /* it ran, or was never whole */
	size_t deleted;     /* its owner wanted it gone */
};

struct rebuild_user {             /* told of each; `why` is NULL for one that is back */
	int sandboxes, snapshots; /* the folders; borrowed */
	int templates, builds;    /* the same; -1: there are none */
	void (*say)(struct rebuild_user *u, const char *kind, const char *id, const char *why);
};

/* All or nothing, durable. Nothing in the folders is changed, and no folder is too odd: it is
 * counted and told of. -1: the journal could not be written, or a folder not be read at all. */
int rebuild_fill(struct journal_db *d, struct rebuild_user *u, struct rebuilt *ret,
		 struct err *err) NODISCARD;

/* One folder, described and whole; row_done(). Also what `hotcell lost restore` reads. */
int rebuild_read(int folder, const char *name, struct journal_row *ret, struct err *err) NODISCARD;
int rebuild_read_snapshot(int folder, const char *name, struct journal_snapshot *ret,
			  struct err *err) NODISCARD;

/* `hotcell-node --rebuild`: data_dir/journal.db, which must not be there, or hold no rows. What
 * was found is printed. The program's exit status: 0 all of it is back, 3 but for what was said, 1
 * nothing was done. */
int rebuild_run(const char *data_dir);

/* Of a journal that holds nothing; else *ret is zero. Blocks (at start only). */
int journal_rebuild(struct journal *j, struct rebuild_user *u, struct rebuilt *ret,
		    struct err *err) NODISCARD;
/* At start: a journal that holds nothing yet is filled, which is logged. */
struct rebuild_folders {
	int sandboxes, snapshots, templates, builds;
};
int rebuild_new(struct journal *j, const struct rebuild_folders *f, struct err *err) NODISCARD;
/* A log without its journal would be applied to another one: ERR_EXISTS. */
int rebuild_check_wal(const char *journal_path, struct err *err) NODISCARD;
