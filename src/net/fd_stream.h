/* fd_stream.h - the bottom layer: a stream over a descriptor, be it TCP, unix, pipe or terminal.
 *
 * Idle, it holds no buffer: reads go through one buffer of the loop, and the write queue exists
 * only while it holds something.
 *
 * A terminal (pty) whose other side is gone reads as an end. Half close is for sockets, and for a
 * descriptor that is only written, which is closed; for a pty it does nothing.
 */
#pragma once

#include "net/stream.h"

enum fd_stream_use {
	FD_STREAM_BOTH,
	FD_STREAM_READ_ONLY,
	FD_STREAM_WRITE_ONLY,
	FD_STREAM_ACCEPTED, /* both, of a socket that is set up as its listener was */
};

/* Takes fd, which becomes non-blocking; on failure it is closed. No regular files. */
int fd_stream_open(struct loop *l, int fd, enum fd_stream_use use, struct stream **ret,
		   struct err *err) NODISCARD;

/* --- for the loop, the listener and fd_pass.c ------------------------------------------------ */

/* Told when a stream lets go of its descriptor. Must not call back into users. */
struct fd_gate {
	void (*on_gone)(struct fd_gate *g);
};

void fd_stream_set_gate(struct stream *s, struct fd_gate *g);

/* The descriptor of a socket with nothing queued, to be used at once and not kept, or taken; else
 * NULL. */
int *fd_stream_idle(struct stream *s);

struct fd_stream;
void fd_stream_cut(struct fd_stream *f); /* end a graceful close now */
