/* run_event.h - what an execution says: lines of JSON, from a guest, so from anybody.
 *
 * Nothing is copied but a line that came in pieces, and nothing is made of it: members of an event
 * borrow from its line.
 */
#pragma once

#include "base/bytes.h"

enum {
	RUN_LINE_MAX = 128 * 1024 * 1024, /* bytes of an event: a message of a kernel has as many */
	RUN_LINE_KEPT = 1024 * 1024,      /* what is larger is given up after its line */
};

/* --- lines ---------------------------------------------------------------------------------- */

struct run_lines { /* all zero: nothing has come */
	struct buf part;
	bool whole; /* `part` is the line that was given last */
};

/* Take the next whole line, without its newline, off what has come. 1: *ret borrows from *in or
 * from `l` until the next call; 0: the rest is kept, more has to come; -1: it is too long. */
int run_lines_next(struct run_lines *l, struct bytes *in, struct bytes *ret,
		   struct err *err) NODISCARD;
bool run_lines_rest(const struct run_lines *l); /* a line has begun and has no end */
void run_lines_done(struct run_lines *l);

/* --- events --------------------------------------------------------------------------------- */

enum run_type {
	RUN_OTHER, /* not told of: a keepalive, or what nobody knows */
	RUN_COUNT,
	RUN_STDOUT,
	RUN_STDERR,
	RUN_RESULT,
	RUN_ERROR,
	RUN_END,
	RUN_BROKEN, /* its kernel went away */
};

enum run_member { /* the first are strings, those behind RUN_STRINGS any JSON */
		  RUN_TEXT,
		  RUN_NAME,
		  RUN_VALUE,
		  RUN_TRACEBACK,
		  RUN_MARKDOWN,
		  RUN_LATEX,
		  RUN_JAVASCRIPT,
		  RUN_PNG,
		  RUN_JPEG,
		  RUN_PDF,
		  RUN_SVG,
		  RUN_HTML,
		  RUN_STRINGS,
		  RUN_JSON = RUN_STRINGS,
		  RUN_CHART,
		  RUN_MEMBERS,
};

struct run_event {
	enum run_type type;
	/* Of a string what is between its quotes (json_skim_take()); of others the JSON. A member
	 * that is not there, or of the wrong kind, or null: ptr is NULL. */
	struct bytes member[RUN_MEMBERS];
};

int run_event_read(struct bytes line, struct run_event *ret, struct err *err) NODISCARD;

static inline bool run_event_has(const struct run_event *e, enum run_member m)
{
	return e->member[m].ptr != NULL;
}
