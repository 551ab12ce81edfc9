/* build_disk.h - the file that the disk of an image is written to, until there is a ground of it.
 *
 *	data_dir/builds/ID/disk    only while it is opened: the file has no name afterwards
 */
#pragma once

#include "base/err.h"

struct node;

/* Empty; once to be written and read, once to be read. */
int build_disk_make(struct node *n, const char *build_id, int *ret_out, int *ret_in,
		    struct err *err) NODISCARD;
/* What a node left that died in between. Absent is fine. */
void build_disk_sweep(struct node *n, const char *build_id);
