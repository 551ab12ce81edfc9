/* process.h - one process that was started for a client: its pipes, its end, who listens.
 *
 *	STARTING ---- exec worked ----> RUNNING ---- reaped ----> EXITED ---- pipes ended ---> over
 *	STARTING ---- exec failed ----> FAILED  ---- reaped ----> over
 *
 * Its life does not depend on any listener: with none, output is read and thrown away. With some,
 * the slowest decides: while one says that it has enough, the pipes are not read, and the process
 * waits in its write. So nothing is ever stored here.
 */
#pragma once

#include "agent/spawn.h"
#include "net/stream.h"
#include "net/timer.h"
#include "net/watch.h"
#include "wire/json.h"

enum process_state { PROCESS_STARTING, PROCESS_RUNNING, PROCESS_FAILED, PROCESS_EXITED };
enum process_output { PROCESS_STDOUT, PROCESS_STDERR, PROCESS_OUTPUTS };

struct process_end {
	bool exited; /* by itself, with `code`; else by the signal `signo` */
	int code;
	int signo;
	bool core; /* dumped */
};

struct process;
struct processes;
struct process_listener;
struct process_listener_ops { /* a listener may leave from inside any of them */
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

struct process_pipe { /* one output, as the stream's user */
	struct stream_user user;
	struct stream *stream; /* NULL: ended */
	struct process *process;
	enum process_output which;
};

struct process {
	enum process_state state;
	pid_t pid;
	int pidfd, news;
	struct watch ended, settled; /* of pidfd, of news */
	struct process_pipe out[PROCESS_OUTPUTS];
	struct stream *in; /* its stdin; NULL: none, or closed */
	struct stream_user in_user;
	struct timer deadline, over_soon;
	struct process_end end;
	struct err fault;
	bool reaped;
	bool hurried; /* killed by us: its end does not wait for its pipes */
	struct process_listener *listeners;
	json_t *config; /* as the client gave it, to be shown in lists */
	char *tag;      /* or NULL */
	/* Once: it is over, nobody listens any more, and the owner frees it. */
	void (*on_over)(struct process *p);
	struct processes *table; /* the owner, and the place in it */
	struct process *next, **prev;
};

struct process_spec {             /* all borrowed */
	struct spawn_order order; /* fd[] is ours to fill */
	bool has_stdin;           /* a pipe; else /dev/null */
	uint64_t deadline_ms;     /* 0: none */
	json_t *config;
	struct bytes tag;
	bool has_tag;
};

int process_start(struct loop *l, const struct process_spec *spec,
		  void (*on_over)(struct process *p), struct process **ret,
		  struct err *err) NODISCARD;
void process_free(struct process *p); /* does not kill */

void process_listen(struct process *p, struct process_listener *ln,
		    const struct process_listener_ops *ops);
void process_leave(struct process_listener *ln);           /* fine when it listens to nobody */
void process_hold(struct process_listener *ln, bool full); /* enough for now, or not any more */

/* SIGKILL and SIGTERM also end the wait for pipes that its children may hold, so they are of use
 * even after the process itself has ended. */
int process_signal(struct process *p, int signo, struct err *err) NODISCARD;
