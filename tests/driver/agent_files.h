/* agent_files.h - read or write one file of the guest, at once and small. */
#pragma once

#include "http/call.h"

enum {
	AGENT_READ_MAX = 16 * 1024 * 1024, /* the largest answer anyone may ask for */
	AGENT_WRITE_MAX = 128 * 1024,      /* leaves with the request's head */
	AGENT_PATH_MAX = 2048,
};

struct agent_file {              /* borrowed for the call that starts it */
	struct bytes path, user; /* no user: the sandbox's default */
	struct bytes access_token;
};

struct agent_files { /* embedded by the caller; all zero: nothing under way */
	/* Once. ERR_NOT_FOUND, or ERR_INTERNAL: the agent said no. `content` is borrowed; empty
	 * after a write. The connection is closed. */
	void (*on_done)(struct agent_files *f, struct bytes content, const struct err *err);
	struct http_call call;
	const char *asking;
};

typedef void agent_files_done(struct agent_files *f, struct bytes content, const struct err *err);

/* Both take the stream in any case. */
int agent_files_read(struct agent_files *f, struct stream *s, const struct agent_file *file,
		     size_t max, uint64_t deadline_ms, agent_files_done *on_done,
		     struct err *err) NODISCARD;
int agent_files_write(struct agent_files *f, struct stream *s, const struct agent_file *file,
		      struct bytes content, uint64_t deadline_ms, agent_files_done *on_done,
		      struct err *err) NODISCARD;
void agent_files_cancel(struct agent_files *f); /* fine when nothing is under way */
