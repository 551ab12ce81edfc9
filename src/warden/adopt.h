/* adopt.h - after a restart: which VMs on this host are whole. */
#pragma once

#include "warden/cell.h"
#include "jail/cgroup.h"

/* Put every VM whose process runs under the uid of its record into the table, as running. What is
 * not whole is left for remove_rest_job. Fails, before anything is touched, where VMs run of which
 * this is not the warden, or where it cannot be told whether one runs. */
int adopt_all(struct cells *t, const struct cgroups *g, int vms, struct err *err) NODISCARD;
