/* file_system.c - see file_system.h. */
#include "agent/files/file_system.h"

#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/vfs.h>

#include "base/bytes.h"

static const uint32_t network[] = {
	NFS_SUPER_MAGIC, SMB_SUPER_MAGIC, SMB2_SUPER_MAGIC, CIFS_SUPER_MAGIC, CEPH_SUPER_MAGIC,
	V9FS_MAGIC,      AFS_FS_MAGIC,    CODA_SUPER_MAGIC, NCP_SUPER_MAGIC,  FUSE_SUPER_MAGIC,
};

static const uint32_t kernel[] = {
	PROC_SUPER_MAGIC, SYSFS_MAGIC,        CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC,
	DEBUGFS_MAGIC,    TRACEFS_MAGIC,      SECURITYFS_MAGIC,   BPF_FS_MAGIC,
	SELINUX_MAGIC,    DEVPTS_SUPER_MAGIC,
};

static bool is_one_of(const char *path, const uint32_t *magics, size_t n)
{
	struct statfs st;

	if (statfs(path, &st) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((uint32_t)st.f_type == magics[i])
			return true;
	return false;
}

bool file_system_is_network(const char *path)
{
	return is_one_of(path, network, COUNT(network));
}

bool file_system_watchable(const char *path, bool network_too)
{
	return !is_one_of(path, kernel, COUNT(kernel)) &&
	       (network_too || !file_system_is_network(path));
}
