/* cgroup.h - one control group per VM, on cgroup v2 or on v1 hierarchies.
 *
 *	v2:  /sys/fs/cgroup/PARENT/NAME
 *	v1:  /sys/fs/cgroup/{memory,cpu,pids}/PARENT/NAME
 *
 * Which of the two is decided by what is mounted, once, at start.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

enum { CGROUP_TREES = 3, CGROUP_NAME_SIZE = 64 };

/* Below PARENT, beside the VMs' groups: charged for the page cache all share. Not a VM's name. */
#define CGROUP_CACHE "_cache"

struct cgroups {
	bool v2;
	size_t n;                 /* folders in use: 1 on v2, CGROUP_TREES on v1 */
	int parent[CGROUP_TREES]; /* PARENT, opened, in each hierarchy */
};

struct cgroup_limits {
	uint64_t memory_bytes;
	uint32_t cpu_percent; /* of one cpu, 0 is no limit */
	uint32_t pids;
};

/* Find the hierarchies and make PARENT, and in it CGROUP_CACHE, in each. */
int cgroups_open(struct cgroups *ret, const char *parent, struct err *err) NODISCARD;

int cgroup_make(const struct cgroups *g, const char *name, const struct cgroup_limits *l,
		struct err *err) NODISCARD;
int cgroup_join(const struct cgroups *g, const char *name, pid_t pid, struct err *err) NODISCARD;

/* The processes in it, at most `max`. Returns how many there are; absent is 0. */
int cgroup_members(const struct cgroups *g, const char *name, pid_t *ret, size_t max,
		   struct err *err) NODISCARD;

/* The one process in it with a pid namespace of its own: a VM's, beside which a copier may run.
 * Returns 1, or 0 when there is none or more than one; -1: it cannot be told now. */
int cgroup_inner(const struct cgroups *g, const char *name, pid_t *ret, struct err *err) NODISCARD;

/* Returns 1 and one process of a group that has no entry of the same name in `folders`; 0: there
 * is no such group. `ret_name` has room for any name of a group. */
int cgroup_strange(const struct cgroups *g, int folders, char ret_name[static CGROUP_NAME_SIZE],
		   pid_t *ret, struct err *err) NODISCARD;

/* Remove it, waiting briefly for dying processes. Absent is success. Only in a job. */
int cgroup_remove(const struct cgroups *g, const char *name, struct err *err) NODISCARD;
