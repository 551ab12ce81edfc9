/* journal_inside.h - what the files of the journal share; nobody else includes it. */
#pragma once

#include "node/journal/journal_db.h"
#include "node/journal/journal_snapshots.h"

enum job_kind {
	JOB_PUT,
	JOB_REMOVE,
	JOB_BURY,
	JOB_FIND,
	JOB_LIST,
	JOB_PRUNE,
	JOB_PUT_SNAPSHOT,
	JOB_REMOVE_SNAPSHOT,
	JOB_NOTE_META, /* about.id: its name, about.team: its value */
};

struct journal_job {
	struct journal_job *next;
	enum job_kind kind;
	struct journal_row row;       /* JOB_PUT; texts are owned */
	struct node_tombstone about;  /* the others: of it what they need */
	struct node_tombstone *found; /* JOB_FIND, JOB_LIST: owned; room for `max` */
	size_t max, n_found;
	struct journal_snapshot snapshot; /* JOB_PUT_SNAPSHOT, `known` is owned; of a removal its id
					   */
	bool durable;
	int rc; /* from the thread */
	struct err err;
	struct journal_write *write; /* the loop's alone; NULL: cancelled */
};

int journal_job_make(const struct journal *j, enum job_kind kind, struct journal_job **ret,
		     struct err *err) NODISCARD;
void journal_job_free(struct journal_job *job);
/* Takes the job. */
int journal_ask(struct journal *j, struct journal_job *job, struct journal_write *w,
		void (*on_done)(struct journal_write *w, const struct err *err)) NODISCARD;
size_t journal_searching(const struct journal *j);

struct rebuild_user;
struct rebuilt;
/* Of one that holds nothing; else *ret is zero. Blocks (at start only). */
int journal_rebuild(struct journal *j, int sandboxes, int snapshots, struct rebuild_user *u,
		    struct rebuilt *ret, struct err *err) NODISCARD;
/* Its file, which the thread leaves alone meanwhile. */
struct journal_db *journal_lock(struct journal *j);
void journal_unlock(struct journal *j);
