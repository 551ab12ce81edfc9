/* guest_process.h - a process in a sandbox, started by its agent as the SDKs have it: what it says
 * comes out as it comes, what is typed goes to it, and it ends with a status.
 */
#pragma once

#include "cli/run_keep.h"

enum {
	GUEST_MESSAGE_MAX = 256 * 1024, /* of the agent; its pieces have 32 KiB */
	GUEST_INPUT_MAX = 32 * 1024,    /* in one request */
	GUEST_QUEUE_MAX = 128 * 1024,   /* read and not sent */
	GUEST_BEAT_MS = 30 * 1000,      /* an agent that lives says something every 15 seconds */
	GUEST_BEATS_MAX = 2,
};

struct guest_process {
	/* by the caller: */
	struct run_session *s;
	bool pty;
	bool keep; /* the sandbox's time is prolonged while it runs */
	int input; /* where its input comes from; -1: it has none */
	int winch; /* readable: the window has another size; -1: never */
	/* A piece of what it said. -1: it cannot be taken, *err. */
	int (*on_output)(struct guest_process *p, bool is_error, struct bytes piece,
			 struct err *err);
	void (*on_winch)(struct guest_process *p, uint16_t *ret_cols, uint16_t *ret_rows);

	/* how it ended */
	bool ended;
	int exit_code;
	char error[256]; /* "signal: killed"; empty: none */

	/* inside: */
	uint32_t pid; /* 0: not yet */
	struct buf in;
	struct timer beat;
	struct run_keep keeper;
	unsigned int misses;
	struct watch watch, winch_watch;
	bool file;             /* input is no pipe, and is always ready */
	bool finished, closed; /* nothing more comes; it has been told */
	bool resize;
	struct buf queue, sending; /* input */
	struct client_exchange send;
	bool busy;
};

/* {"process":{"cmd":...}} as the agent wants it. Until it ends, for `ms` at most. 0: `ended`, and
 * how; -1 otherwise: it could not be started, or it is not known what became of it. */
int guest_process_run(struct guest_process *p, const json_t *start, uint64_t ms,
		      struct err *err) NODISCARD;
/* A command that is over soon, with no input: all that it said goes to `out`, as much as fits. */
int guest_process_capture(struct run_session *s, const char *const *argv, struct buf *out,
			  int *ret_code, struct err *err) NODISCARD;
json_t *guest_process_command(const char *const *argv, int n);
