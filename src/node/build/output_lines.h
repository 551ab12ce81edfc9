/* output_lines.h - what a process says, cut into lines: as it comes, within limits. Pure. */
#pragma once

#include "base/bytes.h"

enum { OUTPUT_LINE_MAX = 1024 }; /* a longer one goes on in the next */

struct output_lines {
	uint8_t line[OUTPUT_LINE_MAX]; /* that has no end yet */
	size_t len;
};

/* A line without its end, and without white space around it; never an empty one. */
typedef void output_line_fn(void *context, struct bytes line);

void output_lines_add(struct output_lines *o, struct bytes piece, output_line_fn *on_line,
		      void *context);
void output_lines_end(struct output_lines *o, output_line_fn *on_line, void *context);
