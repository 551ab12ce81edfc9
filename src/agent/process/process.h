/* process.h - one process that was started for a client: its pipes, its end, who listens.
 *
 *	STARTING ---- exec worked ----> RUNNING ---- reaped ----> EXITED ---- pipes ended ---> over
 *	STARTING ---- exec failed ----> FAILED  ---- reaped ----> over
 *
 * Its life does not depend on any listener: with none, output is read and thrown away. With some,
 * the slowest decides: while one says that it has enough, the pipes are not read, and the process
 * waits in its write. So nothing is ever stored here. (One that takes nothing at all for
 * HTTP_WRITE_STALL_MS is parted from by the server, and the others go on.)
 *
 * While the machine is frozen nothing is read at all, and after it was paused and resumed not for
 * PROCESS_AWAIT_MS, when somebody listened before: what was in the pipe is for who comes again. A
 * copy that waits in a pool is told who it is more than once; the last time counts.
 */
#pragma once

#include "agent/machine/command_groups.h"
#include "agent/process/process_stdio.h"
#include "agent/process/spawn.h"
#include "net/timer.h"
#include "net/watch.h"

enum process_state { PROCESS_STARTING, PROCESS_RUNNING, PROCESS_FAILED, PROCESS_EXITED };

enum {
	PROCESS_AWAIT_MS = 10 * 1000, /* for a listener that was cut off to come again */
	PROCESS_QUIET_MS = 100,       /* no word for so long, its last words have been said */
	PROCESS_LAST_WORDS = 20,      /* how often we wait so for a terminal that others talk to */
};

struct process_end {
	bool exited; /* by itself, with `code`; else by the signal `signo` */
	int code;
	int signo;
	bool core; /* dumped */
	bool oom;  /* the kernel killed a process of this command for lack of memory */
};

struct process;
struct processes;
struct process_listener;
struct process_listener_ops { /* a listener may leave from inside any of them */
	/* These three may be NULL. */
	void (*on_start)(struct process_listener *ln); /* it runs: before anything else */
	void (*on_output)(struct process_listener *ln, enum process_output from, struct bytes b);
	void (*on_overdue)(struct process_listener *ln); /* its time was up; it was killed */
	/* The last call, one of these. The listener has left. */
	void (*on_end)(struct process_listener *ln, const struct process_end *end);
	void (*on_fail)(struct process_listener *ln, const struct err *err); /* never ran */
};

struct process_listener { /* embedded by whoever listens; all zero: to nobody */
	const struct process_listener_ops *ops;
	struct process *process;
	struct process_listener *next, **prev;
	bool full;
};

typedef void process_over_fn(struct process *p);
struct process {
	enum process_state state;
	pid_t pid;
	int pidfd, news;
	struct watch ended, settled; /* of pidfd, of news */
	struct process_stdio stdio;
	struct command_place place;
	struct timer deadline, quiet, awaited;
	struct process_end end;
	struct err fault;
	bool reaped;
	bool parted;  /* its listeners were cut off, and may come again */
	bool hurried; /* killed by us: its end does not wait for its pipes */
	bool said;    /* something, since `quiet` was started */
	bool over;    /* no more waiting for what else it may say */
	unsigned int patience;
	struct process_listener *listeners;
	char *config;    /* JSON, as the client gave it, to be shown in lists */
	char *tag;       /* or NULL */
	uint64_t serial; /* of the table; unlike a pid never used again */
	/* Once: it is over, nobody listens any more, and the owner frees it. */
	process_over_fn *on_over;
	struct processes *table; /* the owner, and the place in it */
	struct process *next, **prev;
};

struct process_spec {             /* all borrowed */
	struct spawn_order order; /* fd[] is ours to fill */
	struct stdio_wish stdio;
	struct command_groups *groups; /* where it finds its cgroup; NULL: order.cgroup */
	uint64_t deadline_ms;          /* 0: none */
	struct bytes config;
	struct bytes tag;
	bool has_tag;
};

int process_start(struct loop *l, const struct process_spec *spec, process_over_fn *on_over,
		  struct process **ret, struct err *err) NODISCARD;
void process_free(struct process *p); /* does not kill */

void process_listen(struct process *p, struct process_listener *ln,
		    const struct process_listener_ops *ops);
void process_await(struct process *p);           /* its listeners, if any, are or were cut off */
void process_update(struct process *p);          /* the table's `still` has changed */
void process_leave(struct process_listener *ln); /* fine when it listens to nobody */
void process_hold(struct process_listener *ln, bool full); /* enough for now, or not any more */

/* SIGKILL and SIGTERM also end the wait for pipes that its children may hold, so they are of use
 * even after the process itself has ended. */
int process_signal(struct process *p, int signo, struct err *err) NODISCARD;

/* From process_stdio.c: */
void process_said(struct process *p, enum process_output from, struct bytes b);
void process_fell_silent(struct process *p); /* one of its outputs has ended */
