/* copy.h - start a copier: the program that reads or writes a VM's memory, under the VM's own uid.
 *
 * Runs in a job, which opens what the copier needs and is done when it was exec'ed. The copier is
 * nobody's job: it answers to the client's socket, and ends with that, with its own deadline, or
 * with the VM's group. See copier/protocol.h.
 */
#pragma once

#include <stdbool.h>

#include "copier/protocol.h"
#include "jail/cgroup.h"
#include "warden/job.h"
#include "warden/record.h"

struct copy {
	struct record record; /* of the VM */
	pid_t pid;
	int pidfd;
	const struct cgroups *cgroups;
	const char *program;
	int vms; /* the folder */
	bool apply;
	int fds[COPIER_FDS]; /* the client's; -1: none */
};

/* A job: on success ret->pid is the copier. */
job_fn copy_job;
