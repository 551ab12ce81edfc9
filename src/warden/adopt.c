/* adopt.c - believe the kernel, not the file: a record is only a hint where to look. */
#include "warden/adopt.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include "base/folder.h"
#include "base/log.h"
#include "jail/process.h"

struct adoption {
	struct cells *cells;
	const struct cgroups *cgroups;
};

/* Then nothing was learned of it, and it must not be taken for gone. */
static bool cannot_tell(int sys)
{
	return sys == EMFILE || sys == ENFILE || sys == ENOMEM || sys == EIO;
}

static int open_netns(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* The pidfd comes first: what is checked after it is checked of that very process. Returns 1, or 0
 * when there is no such VM. */
static int hold(const struct cgroups *g, struct cell *c, struct err *err)
{
	int there = cgroup_inner(g, c->record.id, &c->pid, err);
	pid_t again = 0;

	if (there <= 0)
		return there;
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	c->netns = c->pidfd < 0 ? -1 : open_netns(c->pid);
	if (c->netns < 0)
		return cannot_tell(errno) ? err_set(err, ERR_INTERNAL, errno, "hold its process")
					  : 0;
	if (!process_runs_as(c->pid, c->record.uid))
		return 0;
	there = cgroup_inner(g, c->record.id, &again, err);
	return there > 0 ? again == c->pid : there;
}

/* No VM was found where the record says. That its process lives elsewhere is no reason to take its
 * folder away. */
static int check_gone(const struct adoption *a, const struct record *r, struct err *err)
{
	pid_t pid;
	int n = cgroup_members(a->cgroups, r->id, &pid, 1, err);

	if (n != 0)
		return n < 0 ? -1 : 0; /* what is in its own group is ended before its folder */
	n = process_of_uid(r->uid, &pid, err);
	if (n > 0)
		return err_set(err, ERR_MISMATCH, 0,
			       "its process %d runs in another control group than `cgroup` says: "
			       "set cgroup to what it was, or end that process",
			       pid);
	return n;
}

static int adopt_one(int vms, const char *name, void *context, struct err *err)
{
	AUTO(auto_close) int folder = folder_open(vms, name, O_RDONLY | O_DIRECTORY, 0, err);
	struct adoption *a = context;
	struct record r;
	struct cell *c;
	int held;

	if (folder < 0 || record_read(folder, &r, err) < 0)
		return cannot_tell(err->sys) ? err_wrap(err, "look at vm %s", name) : 0;
	if (strcmp(r.id, name) != 0 || r.slot >= CELLS_MAX)
		return 0;
	c = cell_add(a->cells, &r, err);
	if (!c)
		return 0;
	held = hold(a->cgroups, c, err);
	if (held > 0) {
		cell_enter(c, WARDEN_RUNNING);
		log_info("adopted %s, pid %d", name, c->pid);
		return 0;
	}
	cell_forget(a->cells, c);
	if (held < 0 || check_gone(a, &r, err) < 0)
		return err_wrap(err, "look at vm %s", name);
	return 0;
}

int adopt_all(struct cells *t, const struct cgroups *g, int vms, struct err *err)
{
	struct adoption a = { t, g };
	char name[CGROUP_NAME_SIZE];
	pid_t pid;
	int strange;

	if (folder_each(vms, adopt_one, &a, err) < 0)
		return -1;
	/* a VM's group goes before its folder: this one is of a warden with another state_dir */
	strange = cgroup_strange(g, vms, name, &pid, err);
	if (strange > 0)
		return err_set(err, ERR_MISMATCH, 0,
			       "process %d is in the control group of vm %s, which is not in "
			       "state_dir: set state_dir or cgroup right, or end that process",
			       pid, name);
	return strange;
}
