/* launch.c - see launch.h for the order of things. */
#include "warden/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/bytes.h"
#include "jail/credentials.h"
#include "jail/fdmsg.h"
#include "base/folder.h"
#include "warden/step.h"
#include "warden/template.h"

enum { NOFILE_MAX = 256, HIGH_FD = 64, QMP_BACKLOG = 4 };

/* All the descriptors the new process will need, under their owners' names. */
struct kit {
	int folder; /* of the VM, not for the VMM */
	struct view_cell view;
	int given[VMM_FD_END]; /* by the number the VMM knows them under; -1 is none */
	int log, null;
	struct vmm_args args;
};

static void kit_init(struct kit *k)
{
	*k = (struct kit){ .folder = -1, .view = { -1, -1, -1 }, .log = -1 };
	k->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < COUNT(k->given); i++)
		k->given[i] = -1;
}

/* The VMM's own folder, and the mount it will see it through. */
static int make_own(const struct launch *l, struct kit *k, struct err *err)
{
	AUTO(auto_close) int own = folder_make(k->folder, "own", 0700, err);

	if (own < 0)
		return -1;
	if (fchown(own, l->record.uid, l->record.uid) < 0)
		return err_set(err, ERR_INTERNAL, errno, "give the VM its folder");
	k->view.own = view_detach(own, true, err);
	return k->view.own < 0 ? -1 : 0;
}

static int make_folder(const struct launch *l, struct kit *k, struct err *err)
{
	k->folder = folder_make(l->vms, l->record.id, 0750, err);
	if (k->folder < 0)
		return -1;
	step("start.record");
	if (record_write(k->folder, &l->record, err) < 0)
		return -1;
	if (fchown(k->folder, 0, l->client_gid) < 0)
		return err_set(err, ERR_INTERNAL, errno, "give the client its folder");
	k->log = folder_open(k->folder, "log", O_WRONLY | O_CREAT | O_APPEND, 0640, err);
	if (k->log < 0)
		return -1;
	if (fchown(k->log, 0, l->client_gid) < 0)
		return err_set(err, ERR_INTERNAL, errno, "give the client the log");
	return make_own(l, k, err);
}

/* The overlay of a restored VM is a copy of the template's empty one. */
static int make_overlay(const struct launch *l, const struct kit *k, int from, struct err *err)
{
	AUTO(auto_close) int empty = folder_open(from, "overlay", O_RDONLY, 0, err);
	AUTO(auto_close) int fd = -1;

	step("start.overlay");
	if (empty < 0)
		return -1;
	fd = folder_open(k->folder, "overlay", O_RDWR | O_CREAT | O_EXCL, 0600, err);
	if (fd < 0 || folder_copy(empty, fd, err) < 0)
		return err_wrap(err, "make the overlay of %s", l->record.id);
	return take_fd(&fd);
}

/* The two files QEMU opens by name. While a template is built it may write the memory. */
static int mount_files(const struct launch *l, struct kit *k, int dir, struct err *err)
{
	AUTO(auto_close) int kernel = folder_open(dir, "kernel", O_RDONLY, 0, err);
	AUTO(auto_close) int memory = folder_open(dir, "memory", O_RDONLY, 0, err);

	if (kernel < 0 || memory < 0)
		return -1;
	if (l->build && fchown(memory, l->record.uid, l->client_gid) < 0)
		return err_set(err, ERR_INTERNAL, errno, "give the VM its memory file");
	k->view.kernel = view_detach(kernel, false, err);
	k->view.memory = view_detach(memory, l->build, err);
	return k->view.kernel < 0 || k->view.memory < 0 ? -1 : 0;
}

static int open_files(const struct launch *l, struct kit *k, struct err *err)
{
	AUTO(auto_close)
	int dir = template_open(l->templates, l->record.template_id, l->build, err);
	int rw = l->build ? O_RDWR : O_RDONLY;

	if (dir < 0 || mount_files(l, k, dir, err) < 0)
		return -1;
	k->given[VMM_FD_DISK] = folder_open(dir, "disk", rw, 0, err);
	k->given[VMM_FD_STATE] = folder_open(dir, "state", l->build ? O_WRONLY : O_RDONLY, 0, err);
	k->given[VMM_FD_OVERLAY] = l->build ? folder_open(dir, "overlay", O_RDWR, 0, err)
					    : make_overlay(l, k, dir, err);
	if (k->given[VMM_FD_DISK] < 0 || k->given[VMM_FD_STATE] < 0 || k->given[VMM_FD_OVERLAY] < 0)
		return err_wrap(err, "template %s", l->record.template_id);
	return 0;
}

static int open_kvm(const struct launch *l, struct kit *k, struct err *err)
{
	if (l->vmm->accel != VMM_KVM)
		return 0;
	k->given[VMM_FD_KVM] = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	if (k->given[VMM_FD_KVM] < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "open /dev/kvm");
	return 0;
}

/* Bound through /proc/self/fd: the folder's own path may be longer than a socket name can be. */
static int listen_qmp(const struct launch *l, struct kit *k, struct err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	step("start.socket");
	k->given[VMM_FD_QMP] = sock;
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/qmp.sock", k->folder);
	if (sock < 0 || bind(sock, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
	    fchownat(k->folder, "qmp.sock", 0, l->client_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fchmodat(k->folder, "qmp.sock", 0660, 0) < 0 || listen(sock, QMP_BACKLOG) < 0)
		return err_set(err, ERR_INTERNAL, errno, "listen for QMP");
	return 0;
}

static int join_cgroup(const struct launch *l, struct err *err)
{
	const struct cgroup_limits limits = {
		.memory_bytes = ((uint64_t)l->sizes.memory_mib + l->sizes.overhead_mib) << 20,
		.cpu_percent = l->sizes.cpu_percent,
		.pids = l->sizes.pids_max,
	};

	step("start.cgroup");
	return cgroup_make(l->cgroups, l->record.id, &limits, err);
}

/* --- in the new process ------------------------------------------------------------------- */

static int wait_for_go(int sync, struct err *err)
{
	char go;

	if (read(sync, &go, 1) != 1)
		return err_set(err, ERR_UNAVAILABLE, 0, "the job is gone");
	return 0;
}

/* First all of them out of the way, then each to its number; what is not named closes at exec. */
static int arrange_fds(const struct kit *k, int *sync, struct err *err)
{
	int high[VMM_FD_END];
	int log = fcntl(k->log, F_DUPFD_CLOEXEC, HIGH_FD);

	*sync = fcntl(*sync, F_DUPFD_CLOEXEC, HIGH_FD);
	for (size_t i = VMM_FD_QMP; i < VMM_FD_END; i++)
		high[i] = k->given[i] < 0 ? -1 : fcntl(k->given[i], F_DUPFD_CLOEXEC, HIGH_FD);
	if (*sync < 0 || log < 0 || dup2(k->null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
	    close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		return err_set(err, ERR_INTERNAL, errno, "arrange descriptors");
	for (int i = VMM_FD_QMP; i < VMM_FD_END; i++)
		if (high[i] >= 0 ? dup2(high[i], i) < 0 : close(i) < 0 && errno != EBADF)
			return err_set(err, ERR_INTERNAL, errno, "arrange descriptor %d", i);
	return 0;
}

static int set_limits(struct err *err)
{
	const struct rlimit files = { NOFILE_MAX, NOFILE_MAX };
	const struct rlimit none = { 0, 0 };
	sigset_t empty;

	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	/* no huge pages: a small process would pay 2 MiB for each 4 KiB it touches */
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 ||
	    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set limits");
	return 0;
}

static int enter_jail(const struct launch *l, const struct kit *k, int *sync, struct err *err)
{
	const struct credentials who = { .uid = l->record.uid, .gid = l->record.uid };
	AUTO(auto_close) int listener = -1;

	if (wait_for_go(*sync, err) < 0 || view_enter(l->view_at, &k->view, err) < 0 ||
	    arrange_fds(k, sync, err) < 0 || set_limits(err) < 0 ||
	    credentials_become(&who, err) < 0)
		return -1;
	listener = vmm_filter_load(err);
	if (listener < 0)
		return -1;
	return fdmsg_send(*sync, &(struct err){ 0 }, sizeof(struct err), &listener, 1, err);
}

static _Noreturn void cell_main(const struct launch *l, const struct kit *k, int sync)
{
	/* one arena for all threads: they allocate little, and an arena each costs megabytes */
	static char arenas[] = "MALLOC_ARENA_MAX=1";
	static char *const environment[] = { arenas, NULL };
	struct err err = { 0 };

	if (enter_jail(l, k, &sync, &err) == 0) {
		execve(k->args.argv[0], k->args.argv, environment);
		err_set(&err, ERR_INTERNAL, errno, "exec %s", k->args.argv[0]);
	}
	/* best effort: a closed socket tells the job enough */
	(void)!fdmsg_send(sync, &err, sizeof(err), NULL, 0, &(struct err){ 0 });
	_exit(127);
}

/* --- in the job ---------------------------------------------------------------------------- */

/* kernel ABI of clone3; the child is warden's, not the job's, and goes on when the job ends */
static pid_t clone_cell(int *ret_pidfd)
{
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC |
			 CLONE_NEWUTS,
		.pidfd = (uint64_t)(uintptr_t)ret_pidfd,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* The new process reports once: ready with its listener, or why not. */
static int let_exec(int sync, struct err *err)
{
	AUTO(auto_close) int listener = -1;
	struct err said = { 0 };
	size_t n = 0;

	if (fdmsg_recv(sync, &said, sizeof(said), &listener, 1, &n, err) < 0)
		return err_wrap(err, "the VM's process ended before exec");
	if (said.code != ERR_NONE) {
		*err = said;
		return -1;
	}
	step("start.exec");
	if (vmm_filter_pass_exec(listener, err) < 0)
		return -1;
	close(take_fd(&listener)); /* from now on exec fails */
	if (fdmsg_recv(sync, &said, sizeof(said), NULL, 0, &n, err) == 0) {
		*err = said;
		return -1;
	}
	*err = (struct err){ 0 }; /* the socket closed at exec: it runs */
	return 0;
}

static int guide(const struct launch *l, pid_t pid, int sync, struct err *err)
{
	if (cgroup_join(l->cgroups, l->record.id, pid, err) < 0)
		return -1;
	step("start.jail");
	if (write(sync, "g", 1) != 1)
		return err_set(err, ERR_INTERNAL, errno, "start the VM's process");
	return let_exec(sync, err);
}

static int spawn(const struct launch *l, const struct kit *k, pid_t *ret_pid, int *ret_pidfd,
		 struct err *err)
{
	AUTO(auto_close) int ours = -1;
	int pair[2], pidfd = -1;
	pid_t pid;

	if (setns(l->slot.netns, CLONE_NEWNET) < 0)
		return err_set(err, ERR_INTERNAL, errno, "enter the slot");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "make a socket");
	step("start.clone");
	pid = clone_cell(&pidfd);
	if (pid == 0) {
		close(pair[0]);
		cell_main(l, k, pair[1]);
	}
	close(pair[1]);
	ours = pair[0];
	if (pid < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "clone the VM's process");
	if (guide(l, pid, ours, err) < 0) {
		syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
		close(pidfd);
		return -1;
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}

int launch_job(const void *args, struct job_result *ret, struct err *err)
{
	const struct launch *l = args;
	struct kit k; /* closed by the end of the job */

	kit_init(&k);
	k.given[VMM_FD_TAP] = l->slot.tap;
	if (vmm_arguments(l->vmm, &l->sizes, l->build, &k.args, err) < 0 ||
	    make_folder(l, &k, err) < 0 || open_files(l, &k, err) < 0 || open_kvm(l, &k, err) < 0 ||
	    listen_qmp(l, &k, err) < 0 || join_cgroup(l, err) < 0 ||
	    spawn(l, &k, &ret->pid, &ret->fds[0], err) < 0)
		return err_wrap(err, "start %s", l->record.id);
	ret->n_fds = 1;
	return 0;
}
