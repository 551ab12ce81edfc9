/* remove.h - take away all that is left of a VM, whatever state it was left in. */
#pragma once

#include "warden/cell.h"
#include "jail/cgroup.h"
#include "warden/job.h"

struct removal {
	const struct cgroups *cgroups;
	int vms, templates;
	char id[WARDEN_ID_MAX + 1];
	struct cells *keep; /* remove_rest_job only: what was adopted */
};

/* The processes in its group, the group, its folder. By name alone, so it works without a record,
 * and again after it was interrupted anywhere. */
job_fn remove_job;

/* Everything that belongs to no VM in `keep`: after a restart, before warden serves. */
job_fn remove_rest_job;
