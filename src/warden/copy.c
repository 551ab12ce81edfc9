/* copy.c - see copy.h. What root alone may open is opened here, the rest under the VM's uid. */
#include "warden/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/bytes.h"
#include "base/folder.h"
#include "jail/credentials.h"
#include "jail/descriptors.h"
#include "jail/exec_once.h"
#include "jail/resources.h"
#include "warden/step.h"

enum { NOFILE_MAX = 128 };

/* All that is open for the copier; closed by the end of the job. */
struct hand {
	int program, proc, own; /* the VM's folder in /proc, and the one it may write */
	int given[COPIER_AT_END];
};

static int check_given(const struct copy *c, struct err *err)
{
	int written = c->apply ? O_RDONLY : O_RDWR;

	if (descriptors_check(c->fds[COPIER_FD_CONTROL], S_IFSOCK, O_RDWR, "control", err) < 0 ||
	    descriptors_check(c->fds[COPIER_FD_PAGES], S_IFREG, written, "pages", err) < 0 ||
	    descriptors_check(c->fds[COPIER_FD_MEMORY], S_IFREG, O_RDONLY, "memory", err) < 0)
		return -1;
	return c->apply
		       ? 0
		       : descriptors_check(c->fds[COPIER_FD_STATE], S_IFREG, written, "state", err);
}

/* A number may be another process's by now. The folder is that of the process that had the number
 * when it was opened, and the signal says that ours had it then. */
static int open_process(const struct copy *c, struct hand *h, struct err *err)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", c->pid);
	h->proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (h->proc < 0 || syscall(SYS_pidfd_send_signal, c->pidfd, 0, NULL, 0) < 0)
		return err_set(err, ERR_NOT_FOUND, errno, "vm %s ended", c->record.id);
	h->given[COPIER_AT_MEM] =
		openat(h->proc, "mem", (c->apply ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (h->given[COPIER_AT_MEM] < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "open the memory of %s", c->record.id);
	return 0;
}

static int open_all(const struct copy *c, struct hand *h, struct err *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[WARDEN_ID_MAX + 8];

	for (size_t i = 0; i < COUNT(h->given); i++)
		h->given[i] = i < COPIER_AT ? null : -1;
	memcpy(h->given + COPIER_AT, c->fds, sizeof(c->fds));
	if (check_given(c, err) < 0)
		return -1;
	step("copy.open");
	snprintf(path, sizeof(path), "%s/own", c->record.id);
	h->own = folder_open(c->vms, path, O_RDONLY | O_DIRECTORY, 0, err);
	if (h->own < 0)
		return -1;
	h->program = open(c->program, O_PATH | O_CLOEXEC);
	if (h->program < 0)
		return err_set(err, ERR_INTERNAL, errno, "open %s", c->program);
	return open_process(c, h, err);
}

/* --- in the new process ------------------------------------------------------------------- */

/* Opened under the VM's uid: a page table that root opened would show where memory really is, and
 * in a folder that QEMU writes root opens nothing. */
static int open_as_vm(const struct copy *c, struct hand *h, struct err *err)
{
	h->given[COPIER_AT_MAPS] = openat(h->proc, "maps", O_RDONLY | O_CLOEXEC);
	h->given[COPIER_AT_PAGEMAP] = openat(h->proc, "pagemap", O_RDONLY | O_CLOEXEC);
	if (h->given[COPIER_AT_MAPS] < 0 || h->given[COPIER_AT_PAGEMAP] < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "open the page table of %s",
			       c->record.id);
	h->given[COPIER_AT_SAVED] =
		folder_open(h->own, "state", O_RDWR | O_CREAT | O_NONBLOCK, 0600, err);
	return h->given[COPIER_AT_SAVED] < 0 ? -1 : 0;
}

static int become_copier(const struct copy *c, struct hand *h, int *sync, struct err *err)
{
	const struct credentials who = { .uid = c->record.uid, .gid = c->record.uid };
	const struct resources limits = { .descriptors = NOFILE_MAX };

	if (resources_limit(&limits, err) < 0 ||
	    cgroup_join(c->cgroups, c->record.id, getpid(), err) < 0 ||
	    credentials_become(&who, err) < 0 || open_as_vm(c, h, err) < 0)
		return -1;
	h->program = fcntl(h->program, F_DUPFD_CLOEXEC, COPIER_AT_END);
	return descriptors_arrange(h->given, COUNT(h->given), sync, err);
}

static _Noreturn void copier_main(const struct copy *c, struct hand *h, int sync)
{
	static char name[] = "hotcell-copier", save[] = "save", apply[] = "apply";
	char *const argv[] = { name, c->apply ? apply : save, NULL };
	char *const environment[] = { NULL };
	struct err err = { 0 };

	if (become_copier(c, h, &sync, &err) == 0) {
		execveat(h->program, "", argv, environment, AT_EMPTY_PATH);
		err_set(&err, ERR_INTERNAL, errno, "exec %s", c->program);
	}
	exec_once_failed(sync, &err);
}

/* --- in the job ---------------------------------------------------------------------------- */

int copy_job(const void *args, struct job_result *ret, struct err *err)
{
	const struct copy *c = args;
	struct clone_args how = {
		.flags = CLONE_PARENT
	}; /* warden's child: the job ends before it */
	struct hand h;
	int pair[2];

	if (open_all(c, &h, err) < 0)
		return err_wrap(err, "copy %s", c->record.id);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a socket");
	ret->pid = (pid_t)syscall(SYS_clone3, &how, sizeof(how));
	if (ret->pid == 0)
		copier_main(c, &h, pair[1]);
	close(pair[1]);
	if (ret->pid < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "start a copier");
	step("copy.exec"); /* the new process goes on, whatever becomes of warden */
	if (exec_once_done(pair[0], err) < 0)
		return err_wrap(err, "start a copier for %s", c->record.id);
	return 0;
}
