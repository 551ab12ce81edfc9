/* template.h - the files of a template, from empty to read-only.
 *
 *	templates/.build-ID/   open: a VM boots in it
 *	templates/ID/          published: 0444, synced, never modified again
 */
#pragma once

#include <stdbool.h>

#include "warden/cell.h"
#include "jail/cgroup.h"
#include "warden/job.h"
#include "warden/protocol.h"

enum { TEMPLATE_DEADLINE_MS = 15 * 60 * 1000 }; /* its files are large and disks are slow */

struct template_work {
	int templates; /* the folder */
	const struct cgroups *cgroups;
	char id[WARDEN_ID_MAX + 1];
	uint64_t memory_bytes;
	gid_t client_gid;
	int kernel, disk; /* begin: what to copy */
};

/* The folder of an open or of a published template. */
int template_open(int templates, const char *id, bool build, struct err *err) NODISCARD;

job_fn template_begin_job;   /* ret->fds[0]: the manifest, to be written by the client */
job_fn template_publish_job; /* no VM may be running in it any more */
job_fn template_drop_job;
/* Reads its memory from a group of its own, so that no sandbox is charged for what all share. */
job_fn template_warm_job;

/* Remove what builds left behind, but for those whose VM is in `keep`; before warden serves. */
int template_sweep(int templates, struct cells *keep, struct err *err) NODISCARD;
