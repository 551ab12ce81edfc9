/* process_stdio.h - the ends of a process's stdin, stdout and stderr that are ours: three pipes, or
 * one terminal for all of them.
 *
 * Writing waits for whoever is slow: bytes stay with the writer until the pipe has room, and one
 * writer comes after the other. Nothing here calls back from inside a call.
 */
#pragma once

#include "agent/process/pty.h"
#include "net/stream.h"

enum process_output { PROCESS_STDOUT, PROCESS_STDERR, PROCESS_PTY, PROCESS_OUTPUTS };

struct process;
struct process_pipe { /* one output, as the stream's user */
	struct stream_user user;
	struct stream *stream; /* NULL: ended, or never there */
	struct process *process;
	enum process_output which;
};

struct process_input { /* embedded by a writer; all zero: nothing under way */
	/* Set by the writer. Once, from the loop: all of it was taken (NULL), or the rest never
	 * will be. */
	void (*on_done)(struct process_input *in, const struct err *err);
	struct bytes rest;                  /* borrowed until then */
	struct process_input *next, **prev; /* where it waits; all zero: nowhere */
};

struct process_stdio { /* all zero: nothing is open */
	struct process_pipe out[PROCESS_OUTPUTS];
	struct stream *in; /* the pipe to its stdin; NULL: none, or broken */
	struct stream_user in_user;
	bool in_shut; /* nothing more may be written */
	bool has_pty;
	int tty; /* of a terminal: its master, beside the one in the stream */
	struct process_input *writers;
};

struct stdio_wish {
	bool has_stdin; /* a pipe; else /dev/null */
	bool has_pty;   /* instead of all pipes */
	struct pty_size size;
	uid_t owner; /* of the terminal */
};

/* *ret_theirs: what becomes 0, 1 and 2 of the process, owned by the caller; with a terminal only
 * the first is set. */
int stdio_open(struct process *p, struct loop *l, const struct stdio_wish *w, int ret_theirs[3],
	       struct err *err) NODISCARD;

/* Who is still waiting to write hears of it first, with stdio_refuse(). */
void stdio_close(struct process_stdio *s);
void stdio_refuse(struct process_stdio *s); /* from the loop only: no writer will be served */

void stdio_read(struct process_stdio *s, bool on);
bool stdio_talks(const struct process_stdio *s); /* an output has not ended */

/* 1: taken at once. 0: on_done will come. -1: it has no such input (ERR_INTERNAL). */
int stdio_write(struct process_stdio *s, bool to_pty, struct process_input *in, struct bytes data,
		struct err *err) NODISCARD;
void stdio_cancel(struct process_input *in); /* on_done will not come; fine when nothing waits */

/* An end of file for its stdin, after what waits. A second time does nothing. */
int stdio_shut(struct process_stdio *s, struct err *err) NODISCARD;
int stdio_resize(struct process_stdio *s, const struct pty_size *size, struct err *err) NODISCARD;
