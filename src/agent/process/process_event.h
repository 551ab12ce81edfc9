/* process_event.h - what happens to a process, as the messages of process.Process say it. */
#pragma once

#include "agent/process/process.h"

enum {
	EVENT_PIECE_MAX = 32 * 1024,     /* of output per message, in bytes */
	EVENT_PTY_PIECE_MAX = 16 * 1024, /* the same from a terminal */
	EVENT_AROUND_MAX = 64, /* of a message, around its piece in base64 and with its envelope */
	EVENT_JSON_MAX = EVENT_PIECE_MAX / 3 * 4 + 1024,
};

/* Each appends one whole message. The piece is at most event_piece_max() bytes. */
int event_put_start(struct buf *out, pid_t pid, struct err *err) NODISCARD;
int event_put_output(struct buf *out, enum process_output from, struct bytes piece,
		     struct err *err) NODISCARD;
size_t event_piece_max(enum process_output from);
int event_put_end(struct buf *out, const struct process_end *end, struct err *err) NODISCARD;

#define EVENT_KEEPALIVE BYTES_LIT("{\"event\":{\"keepalive\":{}}}")

/* Behind the status in the error of a command that ended so. */
#define EVENT_OOM " (out of memory: killed by the kernel)"
