/* build_archive.h - the archive of an image that an operator makes a template of.
 *
 *	NODE_IMPORT_OPEN: a file without a name -> a gateway writes it -> NODE_IMPORT_DONE: it is
 *	whole, and the build begins. It goes with the build, or with node.
 *
 * A gateway that dies leaves a build that waits: when nothing was written for a while, it is ended.
 */
#pragma once

#include "net/timer.h"
#include "wire/json.h"

enum {
	ARCHIVES_MAX = 8,                   /* at once, of all teams */
	ARCHIVE_STALLED_MS = 2 * 60 * 1000, /* nothing came: it is given up */
};

struct build_archive {
	int fd;          /* to read; -1: none */
	uint64_t bytes;  /* that were promised */
	uint64_t before; /* that were there at the last look */
	json_t *spec;    /* what the build is told, its commands in it; owned */
	struct timer stalled;
};
#define BUILD_ARCHIVE_NONE ((struct build_archive){ .fd = -1 })

void build_archive_close(struct build_archive *a); /* fine when there is none */
/* ERR_INVALID: none came, or not all of it. Nobody looks whether it goes on any more. */
int build_archive_whole(struct build_archive *a, struct err *err) NODISCARD;
/* One more descriptor of it. */
int build_archive_again(const struct build_archive *a, int *ret, struct err *err) NODISCARD;
