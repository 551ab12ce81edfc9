/* build_disk.h - large files of a build that nobody needs after it.
 *
 *	data_dir/builds/ID/disk      of an image, until there is a ground of it
 *	                   archive   of an image that an operator imports
 *
 * Each has its name only while it is opened: it goes with the last who has it open.
 */
#pragma once

#include "base/err.h"

struct node;

#define BUILD_DISK    "disk"
#define BUILD_ARCHIVE "archive"

/* Empty; once to be written and read, once to be read. */
int build_disk_make(struct node *n, const char *build_id, const char *name, int *ret_out,
		    int *ret_in, struct err *err) NODISCARD;
/* What a node left that died in between. Absent is fine. */
void build_disk_sweep(struct node *n, const char *build_id);
