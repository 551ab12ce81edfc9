/* run_files.h - results of an execution as files: STEM-1.png, STEM-1.chart.json, STEM-2.svg.
 *
 * A guest chooses contents and nothing else: names are made here. A file that is there is never
 * written to, nor is what a link points at; the next number is taken.
 */
#pragma once

#include "cli/run_event.h"

enum {
	RUN_FILES_MAX = 1000, /* of one execution */
	RUN_STEM_MAX = 100,   /* bytes of a name before its number */
};
#define RUN_FILES_BYTES_MAX (1024ull * 1024 * 1024) /* of all of them */

struct run_files {
	const char *path; /* of the folder, as it was typed; NULL: the current one */
	int dir;
	char stem[RUN_STEM_MAX + 1];
	unsigned int number; /* of the result before */
	unsigned int n;
	uint64_t bytes;
	/* Told of each file that was written: its name, below `path`. */
	void (*on_file)(struct run_files *f, const char *name);
};

/* Opens the folder, and makes it if it is not there. `source`: what was run, NULL: nothing that has
 * a name. */
int run_files_open(struct run_files *f, const char *path, const char *source,
		   struct err *err) NODISCARD;
void run_files_close(struct run_files *f);

/* Writes what a result has for files. How many, or -1: nothing more can be written, or what came is
 * not what it should be (ERR_INVALID). */
int run_files_add(struct run_files *f, const struct run_event *e, struct err *err) NODISCARD;
