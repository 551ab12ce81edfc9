/* journal_thread.h - the thread that writes, and the jobs it is given. Only the files of the
 * journal include it. */
#pragma once

#include <pthread.h>

#include "base/latency.h"
#include "net/watch.h"
#include "node/journal/journal_catalog.h"
#include "node/journal/journal_db.h"
#include "node/journal/journal_meta.h"
#include "node/journal/journal_snapshots.h"
#include "node/journal/tombstones_db.h"

enum job_kind {
	JOB_PUT,
	JOB_REMOVE,
	JOB_BURY,
	JOB_FIND,
	JOB_LIST,
	JOB_PRUNE,
	JOB_PUT_SNAPSHOT,
	JOB_REMOVE_SNAPSHOT,
	JOB_PUT_TEMPLATE,
	JOB_REMOVE_TEMPLATE,
	JOB_REMOVE_BUILD,
	JOB_NOTE_META, /* about.id: its name, about.team: its value */
};

struct catalog_rows { /* of one job; texts are owned */
	bool has_template, has_build;
	struct journal_template template;
	struct journal_build build;
};

struct journal_job {
	struct journal_job *next, **prev;
	enum job_kind kind;
	struct journal_row row;           /* JOB_PUT; texts are owned */
	struct node_tombstone about;      /* the others: of it what they need */
	struct tombstones found;          /* JOB_FIND, JOB_LIST: owned */
	struct journal_snapshot snapshot; /* JOB_PUT_SNAPSHOT, `known` is owned; of a removal its id
					   */
	struct catalog_rows *catalog;     /* JOB_PUT_TEMPLATE; owned. Else NULL */
	bool durable;
	uint64_t asked_ns; /* by clock_mono_ns() */
	int rc;            /* from the thread */
	struct err err;
	struct journal_write *write; /* the loop's alone; NULL: cancelled */
};

struct jobs { /* in the order asked */
	struct journal_job *first, **last;
};

struct journal {
	struct watch rung;
	int bell;
	size_t n_jobs, n_searches; /* not told yet */
	struct jobs told;
	bool telling, closed;
	struct latency took; /* from asked to told */
	uint64_t n_failed;
	char failure[JOURNAL_FAILURE_MAX];
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;
	struct jobs asked, done;
	bool stop;
	bool reserved; /* since the last write it was looked whether there is a reserve */
	pthread_mutex_t db_lock;
	struct journal_db *db;
	int sandboxes, snapshots, templates, builds; /* where rows are described; -1: nowhere */
};

/* Writes until it is stopped. */
int journal_thread_start(struct journal *j, struct err *err) NODISCARD;
void journal_thread_stop(struct journal *j);    /* waits until what was asked for is written */
void journal_thread_collect(struct journal *j); /* what is done, to be told */

int journal_job_make(const struct journal *j, enum job_kind kind, struct journal_job **ret,
		     struct err *err) NODISCARD;
void journal_job_free(struct journal_job *job);
bool journal_job_searches(const struct journal_job *job); /* it finds something */
/* Takes the job. */
int journal_ask(struct journal *j, struct journal_job *job, struct journal_write *w,
		journal_done_fn *on_done) NODISCARD;
/* Its file, which the thread leaves alone meanwhile. */
struct journal_db *journal_lock(struct journal *j);
void journal_unlock(struct journal *j);
