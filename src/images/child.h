/* child.h - run a program of others, or one that reads hostile bytes, to its end; in a jail.
 *
 * No new privileges, an empty environment but what is given, the descriptors that are named and no
 * others, limits, Landlock, and a filter that leaves it threads and no children. It dies with who
 * started it. Blocks: only a job calls this (job.h).
 */
#pragma once

#include "base/bytes.h"
#include "jail/confine.h"

enum {
	CHILD_FDS_MAX = 160,
	CHILD_LINE_MAX = 16 * 1024,          /* of what it writes; a longer line comes in pieces */
	CHILD_ERROR_MAX = 8 * 1024,          /* the end of its standard error is kept */
	CHILD_OUTPUT_MAX = 64 * 1024 * 1024, /* bytes that are read of it; more ends it */
};

struct child_fd {
	int from, to; /* `to`: its number there; 0 to 2 are taken */
};

struct child_reader; /* embedded by the caller */
typedef int child_line_fn(struct child_reader *r, struct bytes line, struct err *err);
struct child_reader {
	child_line_fn *on_line; /* -1: enough, it is killed. NULL: all of it goes to `all` */
	struct buf *all;        /* its max holds: more than that is an error */
	struct buf part;        /* of a line */
	uint64_t total;
};

struct child {
	const char *const *argv; /* argv[0] is an absolute path; ends with NULL */
	const char *const *environment;
	const struct confine_path *paths;
	size_t n_paths;
	const struct child_fd *fds;
	size_t n_fds;
	int null;      /* /dev/null, opened */
	int reader_fd; /* the descriptor at which its `reader` listens: 1, or another */
	struct child_reader *reader;
	struct buf *errors;  /* the end of its standard error; NULL: that goes to our log */
	unsigned int denied; /* images/program_filter.h */
	uint64_t file_bytes; /* no file grows beyond this; 0: no limit */
	uint64_t memory_bytes;
};

/* Returns its exit status, 128 and more when a signal ended it. -1: it could not be run, or a
 * reader has refused. */
int child_run(const struct child *c, struct err *err) NODISCARD;
