/* vm_group.h - what the kernel says of a VM's control group, which warden made. Nothing of it asks
 * the guest.
 *
 *	v2:  /sys/fs/cgroup/PARENT/ID            v1:  /sys/fs/cgroup/{memory,cpu}/PARENT/ID
 *
 * Where v1 counts no processor time beside its limits, QEMU's own /proc/PID/stat has it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "jail/confine.h"

enum {
	VM_GROUP_PATH_MAX = 512,
	VM_GROUP_TEXT_MAX = 4096, /* of a file; what counts comes early */
	VM_GROUP_FOLDERS_MAX = 2,
};

struct vm_groups {
	bool v2, cpu_of_process;
	char parent[VM_GROUP_PATH_MAX / 2]; /* empty: none, nothing is known */
	long ticks_per_s;                   /* of /proc/PID/stat */
};

struct vm_usage {
	uint64_t cpu_ns;                    /* since it began */
	uint64_t memory_bytes, cache_bytes; /* its own, and of files charged to it */
};

/* `parent` as in warden's setting `cgroup`. */
void vm_groups_open(struct vm_groups *g, const char *parent);
/* What must stay readable for it; returns how many, at most VM_GROUP_FOLDERS_MAX. */
size_t vm_groups_folders(const struct vm_groups *g, struct confine_path *ret);

int vm_group_measure(const struct vm_groups *g, const char *id, struct vm_usage *ret,
		     struct err *err) NODISCARD;
/* Its own memory alone: what may differ from the template's. 0: not known. */
uint64_t vm_group_memory_mib(const struct vm_groups *g, const char *id);
/* The kernel killed something in it: it had more memory than it may. */
bool vm_group_out_of_memory(const struct vm_groups *g, const char *id);

/* "name number" in a file of such lines. */
bool vm_group_number(const char *text, const char *name, uint64_t *ret);
/* Ticks in user and kernel mode, from the text of /proc/PID/stat. */
bool vm_group_ticks(const char *stat, uint64_t *ret);
