/* remove.c - the order is processes, group, files: nothing is taken from under a live process. */
#include "warden/remove.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/folder.h"
#include "warden/step.h"
#include "warden/template.h"

enum { MEMBERS_MAX = 64, KILL_TRIES = 500, KILL_WAIT_MS = 10 };

/* A pid read from the group may be reused before the signal: look again through the pidfd. */
static void kill_member(const struct removal *r, pid_t pid)
{
	AUTO(auto_close) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct err ignored = { 0 };
	pid_t now[MEMBERS_MAX];
	int n = pidfd < 0 ? 0 : cgroup_members(r->cgroups, r->id, now, MEMBERS_MAX, &ignored);

	for (int i = 0; i < n && i < MEMBERS_MAX; i++)
		if (now[i] == pid)
			syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

static int kill_all(const struct removal *r, struct err *err)
{
	pid_t members[MEMBERS_MAX];

	for (int tries = 0; tries < KILL_TRIES; tries++) {
		int n = cgroup_members(r->cgroups, r->id, members, MEMBERS_MAX, err);

		if (n <= 0)
			return n;
		for (int i = 0; i < n && i < MEMBERS_MAX; i++)
			kill_member(r, members[i]);
		poll(NULL, 0, KILL_WAIT_MS);
	}
	return err_set(err, ERR_TIMEOUT, 0, "processes of %s do not end", r->id);
}

static int remove_vm(const struct removal *r, struct err *err)
{
	if (kill_all(r, err) < 0)
		return -1;
	step("stop.cgroup");
	if (cgroup_remove(r->cgroups, r->id, err) < 0)
		return -1;
	step("stop.files");
	return folder_remove(r->vms, r->id, err);
}

int remove_job(const void *args, struct job_result *ret, struct err *err)
{
	const struct removal *r = args;

	(void)ret;
	return remove_vm(r, err);
}

/* Called for each VM's folder and for each group, which have the same names. One that cannot be
 * removed must not keep the others: it is said, and tried again at the next start. */
static int remove_unless_kept(int dir, const char *name, void *context, struct err *err)
{
	struct removal *r = context;
	struct err why = { 0 };
	struct stat st;

	(void)err;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
	    !folder_name_ok(name, sizeof(r->id)) || cell_find(r->keep, name))
		return 0;
	snprintf(r->id, sizeof(r->id), "%s", name);
	if (remove_vm(r, &why) < 0)
		log_error("remove what is left of %s: %s", name, why.msg);
	else
		log_info("removed what was left of %s", name);
	return 0;
}

int remove_rest_job(const void *args, struct job_result *ret, struct err *err)
{
	struct removal r = *(const struct removal *)args;

	(void)ret;
	if (folder_each(r.vms, remove_unless_kept, &r, err) < 0 ||
	    folder_each(r.cgroups->parent[0], remove_unless_kept, &r, err) < 0)
		return -1;
	return template_sweep(r.templates, r.keep, err);
}
