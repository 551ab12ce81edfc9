/* processes.h - the table of processes that were started for clients and are not over yet, and how
 * those ended that were until a moment ago.
 */
#pragma once

#include "agent/process/process.h"
#include "agent/process/process_request.h"

enum {
	PROCESSES_MAX = 4096,
	PROCESSES_CONFIG_MAX = 16 * 1024 * 1024, /* of all configurations together, in bytes */
	PAST_MAX = 1024,                         /* ends remembered; the oldest goes first */
	PAST_MS = 30 * 1000,                     /* how long */
};

struct past { /* one that is over */
	pid_t pid;
	char *tag; /* or NULL */
	struct process_end end;
	uint64_t at_ms;
};

struct processes {
	struct loop *loop;
	struct process *first; /* the newest */
	size_t n, config_bytes;
	uint64_t serial;
	bool still;                 /* nothing of what they say is read */
	struct past past[PAST_MAX]; /* a ring */
	size_t past_next, past_n;
};

void processes_init(struct processes *t, struct loop *l);

/* Forgets them all; they live on, as children of init. */
void processes_done(struct processes *t);

/* The process stays the table's: a listener is how to hear of it. ERR_EXHAUSTED: table full. */
int processes_start(struct processes *t, const struct process_spec *spec, struct process **ret,
		    struct err *err) NODISCARD;

/* The newest that fits. ERR_NOT_FOUND: none, in the words that clients know. */
int processes_find(struct processes *t, const struct process_selector *which, struct process **ret,
		   struct err *err) NODISCARD;
struct process *processes_by_serial(struct processes *t, uint64_t serial); /* NULL: over */

/* The newest that is over, not for longer than PAST_MS. NULL: none. Borrowed until the next turn of
 * the loop. */
const struct past *processes_past(struct processes *t, const struct process_selector *which);

/* From a freeze to the thaw: what they said stays in their pipes. */
void processes_still(struct processes *t, bool on);
/* Before all connections are cut: who is listened to keeps its words for a while. */
void processes_await(struct processes *t);

/* {"processes":[...]}, of those that run. */
int processes_put_list(const struct processes *t, struct buf *out, struct err *err) NODISCARD;
