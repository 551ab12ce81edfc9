/* launch.h - from nothing to a jailed VMM: the whole of what starting one VM takes.
 *
 * Runs in a job. In order, each a named step: record, socket, cgroup, clone, jail, exec.
 * The VMM becomes warden's own child (CLONE_PARENT) in namespaces of its own, and waits for the job
 * at every step up to exec: when warden dies, so does the job, and with it a half-made VM.
 */
#pragma once

#include "jail/cgroup.h"
#include "warden/job.h"
#include "warden/record.h"
#include "warden/slot.h"
#include "jail/view.h"
#include "warden/vmm.h"

struct launch {
	struct record record;
	struct warden_sizes sizes;
	const struct vmm *vmm;
	const struct cgroups *cgroups;
	const char *view_at;
	struct slot slot;
	int vms, templates; /* folders */
	gid_t client_gid;   /* may connect to QMP */
	bool build, boot;
	char kernel_id[WARDEN_ID_MAX + 1]; /* a boot: whose kernel; "": its template's */
	int fds[WARDEN_FDS_MAX];           /* a restore: by enum warden_restore_fd */
	size_t n_fds;
};

/* A job: on success ret->pid is the VMM, ret->fds[0] its pidfd. */
job_fn launch_job;
