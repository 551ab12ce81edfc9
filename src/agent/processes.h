/* processes.h - the table of processes that were started for clients and are not over yet. */
#pragma once

#include "agent/process.h"

enum { PROCESSES_MAX = 4096 };

struct processes {
	struct loop *loop;
	struct process *first;
	size_t n;
};

void processes_init(struct processes *t, struct loop *l);

/* Forgets them all; they live on, as children of init. */
void processes_done(struct processes *t);

/* The process stays the table's: a listener is how to hear of it. ERR_EXHAUSTED: table full. */
int processes_start(struct processes *t, const struct process_spec *spec, struct process **ret,
		    struct err *err) NODISCARD;
