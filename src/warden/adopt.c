/* adopt.c - believe the kernel, not the file: a record is only a hint where to look. */
#include "warden/adopt.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/folder.h"

struct adoption {
	struct cells *cells;
	const struct cgroups *cgroups;
};

/* Until exec the process is not dumpable and what is in its /proc folder is root's; afterwards that
 * belongs to the VM's uid. So the owner tells both who it is and that its start was finished. The
 * folder itself is the uid's all the time. */
static bool runs_as(pid_t pid, uint32_t uid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return stat(path, &st) == 0 && st.st_uid == uid;
}

static int open_netns(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The pidfd comes first: what is checked after it is checked of that very process. */
static bool hold(const struct cgroups *g, struct cell *c)
{
	pid_t again;

	if (!cgroup_inner(g, c->record.id, &c->pid))
		return false;
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	c->netns = open_netns(c->pid);
	return c->pidfd >= 0 && c->netns >= 0 && runs_as(c->pid, c->record.uid) &&
	       cgroup_inner(g, c->record.id, &again) && again == c->pid;
}

static int adopt_one(int vms, const char *name, void *context, struct err *err)
{
	AUTO(auto_close) int folder = folder_open(vms, name, O_RDONLY | O_DIRECTORY, 0, err);
	struct adoption *a = context;
	struct record r;
	struct cell *c;

	if (folder < 0 || record_read(folder, &r, err) < 0 || strcmp(r.id, name) != 0 ||
	    r.slot >= CELLS_MAX)
		return 0;
	c = cell_add(a->cells, &r, err);
	if (!c)
		return 0;
	if (!hold(a->cgroups, c)) {
		cell_forget(a->cells, c);
		return 0;
	}
	cell_enter(c, WARDEN_RUNNING);
	log_info("adopted %s, pid %d", name, c->pid);
	return 0;
}

int adopt_all(struct cells *t, const struct cgroups *g, int vms, struct err *err)
{
	struct adoption a = { t, g };

	return folder_each(vms, adopt_one, &a, err);
}
