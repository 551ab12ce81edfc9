/* copy.h - `hotcell cp`: files and folders to a sandbox and back, one file at a time, over the
 * routes that the SDKs use.
 *
 * What a guest says of its files is hostile. A name is one component of a path, without control
 * characters, or it is left out; below the target everything is opened relative to a descriptor and
 * never through a link; depth and number are bounded.
 */
#pragma once

#include "cli/run_keep.h"

enum {
	COPY_PATH_MAX = 4096,
	COPY_NAME_MAX = 255,
	COPY_DEPTH_MAX = 64, /* folders in folders */
	COPY_ENTRIES_MAX = 1000 * 1000,
	COPY_LIST_MAX = 32 * 1024 * 1024, /* what the agent says of one folder */
	COPY_STALL_MS = 120 * 1000,       /* without a byte */
	COPY_TICK_MS = 200,
	COPY_SHOW_MS = 1000, /* what is quicker shows no progress */
};

struct copying {
	struct run_session s;
	struct run_keep keep;
	/* counted, for people and for programs */
	uint64_t files, bytes, skipped, entries;
	/* progress */
	struct timer tick;
	bool terminal, shown;
	uint64_t since_ms, moved_ms; /* when it began; when a byte moved last */
	uint64_t seen;               /* of the file, then */
	char name[64];               /* of the file, for a terminal */
	uint64_t size;               /* that it is said to have; 0: not known */
	/* a download */
	int to; /* where its bytes go; -1: nowhere */
	uint64_t got;
};

struct copy_entry { /* what a sandbox has under a path */
	bool dir, link, file;
	unsigned int mode; /* bits 0777 */
	uint64_t size;
	char name[COPY_NAME_MAX + 1]; /* hostile; empty: too long */
};

/* May a file be called so? One component, no control characters. */
bool copy_name_ok(const char *name);
/* "a/b" of the two; false: too long. */
bool copy_join(const char *dir, const char *name, char ret[static COPY_PATH_MAX]);
/* The last component; "" when there is none to take: "", "/", ".", "..". */
const char *copy_base(char *path); /* cuts slashes off its end */
/* Says on standard error what was left out, and counts it. */
void copy_skip(struct copying *c, const char *what, const char *why);
/* One more was met; ERR_EXHAUSTED: too many, or too deep. */
int copy_count(struct copying *c, int depth, struct err *err) NODISCARD;

int copy_run(struct cli *c); /* the command */

/* --- of a sandbox --------------------------------------------------------------------------- */

/* ERR_NOT_FOUND */
int copy_stat(struct copying *c, const char *path, struct copy_entry *ret,
	      struct err *err) NODISCARD;
int copy_list(struct copying *c, const char *path, json_t **ret, struct err *err) NODISCARD;
void copy_entry_read(const json_t *v, struct copy_entry *ret);
int copy_make_dir(struct copying *c, const char *path,
		  struct err *err) NODISCARD; /* or it is there */
int copy_chmod(struct copying *c, const char *path, unsigned int mode, struct err *err) NODISCARD;
/* `bytes` of a file; out of a file into `to`. */
int copy_put(struct copying *c, int from, uint64_t bytes, const char *path,
	     struct err *err) NODISCARD;
int copy_get(struct copying *c, const char *path, const struct copy_entry *e, int to,
	     struct err *err) NODISCARD;

void copy_progress_begin(struct copying *c);
void copy_progress_end(struct copying *c);

/* --- the two ways --------------------------------------------------------------------------- */

/* `to` is a path in the sandbox; `into`: it is a folder, and what is copied gets its own name. */
int copy_up(struct copying *c, char *from, const char *to, bool into, struct err *err) NODISCARD;
/* The same the other way round. */
int copy_down(struct copying *c, char *from, const char *to, bool into, struct err *err) NODISCARD;
