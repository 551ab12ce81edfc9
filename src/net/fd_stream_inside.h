/* fd_stream_inside.h - what the loop, the listener and fd_pass.c need of a descriptor stream. */
#pragma once

#include "net/stream.h"

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
