/* run_execution.h - code goes to the code interpreter of a sandbox; what it says comes out as it
 * comes: output, results as text and files, an exception.
 */
#pragma once

#include "cli/run_files.h"
#include "cli/run_out.h"
#include "cli/run_session.h"

enum {
	RUN_BEAT_MS = 30 * 1000, /* a server that lives says something every 5 seconds */
	RUN_BEATS_MAX = 2,       /* without a byte: it is gone */
};

struct run_execution {
	struct run_session *s;
	struct run_out out, err_out;
	struct run_files *files; /* NULL: none are written */
	struct run_lines lines;
	struct timer beat;
	unsigned int misses;
	bool raised;     /* an exception */
	bool incomplete; /* a result could not be written */
	bool closed;     /* nobody reads our output any more */
};

/* `body` is the request. 0: the code ran to its end, `raised` says how; -1 and *err otherwise. */
int run_execution_run(struct run_execution *e, struct bytes body, uint64_t seconds,
		      struct err *err) NODISCARD;
