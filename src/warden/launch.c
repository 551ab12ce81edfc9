/* launch.c - see launch.h for the order of things. */
#include "warden/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/bytes.h"
#include "jail/credentials.h"
#include "jail/descriptors.h"
#include "jail/exec_once.h"
#include "jail/resources.h"
#include "base/folder.h"
#include "warden/step.h"
#include "warden/template.h"

/* When the host has no memory left, a sandbox goes before any service of the host's own, which has
 * 0. Warden has less, and a process inherits it. */
#define OOM_SCORE "500"

enum {
	NOFILE_MAX = 256,
	QMP_BACKLOG = 4,
	DISK_SPARE_PART = 20,  /* a qcow2 file is larger than what is in it: by a 20th, */
	DISK_SPARE = 64 << 20, /* and by this */
};

/* All the descriptors the new process will need, under their owners' names. */
struct kit {
	int folder; /* of the VM, not for the VMM */
	struct view_cell view;
	int given[VMM_FD_END]; /* by the number the VMM knows them under; -1 is none */
	struct vmm_args args;
};

static void kit_init(struct kit *k)
{
	*k = (struct kit){ .folder = -1, .view = { -1, -1, -1 } };
	for (size_t i = 0; i < COUNT(k->given); i++)
		k->given[i] = -1;
	k->given[STDIN_FILENO] = open("/dev/null", O_RDONLY | O_CLOEXEC);
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
	int log;

	k->folder = folder_make(l->vms, l->record.id, 0750, err);
	if (k->folder < 0)
		return -1;
	step("start.record");
	if (record_write(k->folder, &l->record, err) < 0)
		return -1;
	if (fchown(k->folder, 0, l->client_gid) < 0)
		return err_set(err, ERR_INTERNAL, errno, "give the client its folder");
	log = folder_open(k->folder, "log", O_WRONLY | O_CREAT | O_APPEND, 0640, err);
	k->given[STDOUT_FILENO] = k->given[STDERR_FILENO] = log;
	if (log < 0)
		return -1;
	if (fchown(log, 0, l->client_gid) < 0)
		return err_set(err, ERR_INTERNAL, errno, "give the client the log");
	return make_own(l, k, err);
}

/* A disk that was kept is booted with the kernel of now. */
static int open_kernel(const struct launch *l, int dir, struct err *err)
{
	AUTO(auto_close) int other = -1;

	if (!l->kernel_id[0])
		return folder_open(dir, "kernel", O_RDONLY, 0, err);
	other = template_open(l->templates, l->kernel_id, false, err);
	return other < 0 ? -1 : folder_open(other, "kernel", O_RDONLY, 0, err);
}

/* The two files QEMU opens by name. While a template is built it may write the memory. */
static int mount_files(const struct launch *l, struct kit *k, int dir, struct err *err)
{
	AUTO(auto_close) int kernel = open_kernel(l, dir, err);
	AUTO(auto_close)
	int memory = l->n_fds > WARDEN_FD_MEMORY ? view_open_again(l->fds[WARDEN_FD_MEMORY], err)
						 : folder_open(dir, "memory", O_RDONLY, 0, err);

	if (kernel < 0 || memory < 0)
		return -1;
	if (l->build && fchown(memory, l->record.uid, l->client_gid) < 0)
		return err_set(err, ERR_INTERNAL, errno, "give the VM its memory file");
	k->view.kernel = view_detach(kernel, false, err);
	k->view.memory = view_detach(memory, l->build, err);
	return k->view.kernel < 0 || k->view.memory < 0 ? -1 : 0;
}

/* The client's own: QEMU works with whatever it gets, so it is looked at here. */
static int take_given(const struct launch *l, struct kit *k, struct err *err)
{
	static const char *const names[] = { "overlay", "state", "memory", "layer" };

	for (size_t i = 0; i < l->n_fds; i++) {
		const char *name = names[i < WARDEN_FD_LAYERS ? i : WARDEN_FD_LAYERS];
		int access = i == WARDEN_FD_OVERLAY ? O_RDWR : O_RDONLY;

		if (descriptors_check(l->fds[i], S_IFREG, access, name, err) < 0)
			return -1;
		if (i >= WARDEN_FD_LAYERS)
			k->given[VMM_FD_LAYERS + i - WARDEN_FD_LAYERS] = l->fds[i];
	}
	if (l->n_fds > WARDEN_FD_OVERLAY)
		k->given[VMM_FD_OVERLAY] = l->fds[WARDEN_FD_OVERLAY];
	if (l->n_fds > WARDEN_FD_STATE)
		k->given[VMM_FD_STATE] = l->fds[WARDEN_FD_STATE];
	return 0;
}

static int open_files(const struct launch *l, struct kit *k, struct err *err)
{
	AUTO(auto_close)
	int dir = template_open(l->templates, l->record.template_id, l->build, err);
	int *given = k->given;

	if (dir < 0 || take_given(l, k, err) < 0 || mount_files(l, k, dir, err) < 0)
		return -1;
	given[VMM_FD_DISK] = folder_open(dir, "disk", l->build ? O_RDWR : O_RDONLY, 0, err);
	if (l->build)
		given[VMM_FD_OVERLAY] = folder_open(dir, "overlay", O_RDWR, 0, err);
	if (given[VMM_FD_STATE] < 0)
		given[VMM_FD_STATE] =
			folder_open(dir, "state", l->build ? O_WRONLY : O_RDONLY, 0, err);
	if (given[VMM_FD_DISK] < 0 || given[VMM_FD_OVERLAY] < 0 || given[VMM_FD_STATE] < 0)
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

static int enter_jail(const struct launch *l, const struct kit *k, int *sync, struct err *err)
{
	const struct credentials who = { .uid = l->record.uid, .gid = l->record.uid };
	const uint64_t disk = (uint64_t)l->sizes.disk_mib << 20;
	const struct resources limits = {
		.descriptors = NOFILE_MAX,
		.file_bytes = disk ? disk + disk / DISK_SPARE_PART + DISK_SPARE : 0
	};

	if (wait_for_go(*sync, err) < 0 || view_enter(l->view_at, &k->view, err) < 0 ||
	    descriptors_arrange(k->given, VMM_FD_END, sync, err) < 0 ||
	    resources_limit(&limits, err) < 0 || credentials_become(&who, err) < 0)
		return -1;
	prctl(PR_SET_DUMPABLE, 0); /* whatever fs.suid_dumpable says: see adopt.c */
	return exec_once_ready(*sync, err);
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
	exec_once_failed(sync, &err);
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

/* As root does it, the process cannot take it back. */
static int set_oom_score(pid_t pid, struct err *err)
{
	AUTO(auto_close) int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[64];

	snprintf(path, sizeof(path), "%d/oom_score_adj", pid);
	return folder_write(proc, path, OOM_SCORE, err);
}

static int guide(const struct launch *l, pid_t pid, int sync, struct err *err)
{
	int listener;

	if (cgroup_join(l->cgroups, l->record.id, pid, err) < 0 || set_oom_score(pid, err) < 0)
		return -1;
	step("start.jail");
	if (write(sync, "g", 1) != 1)
		return err_set(err, ERR_INTERNAL, errno, "start the VM's process");
	listener = exec_once_wait(sync, err);
	if (listener < 0)
		return -1;
	step("start.exec");
	return exec_once_pass(sync, listener, err);
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
	const size_t below = l->n_fds < WARDEN_FD_LAYERS ? l->n_fds : WARDEN_FD_LAYERS;
	const struct vmm_start how = { l->build, l->boot, .layers = l->n_fds - below };
	struct kit k; /* closed by the end of the job */

	kit_init(&k);
	k.given[VMM_FD_TAP] = l->slot.tap;
	if (vmm_arguments(l->vmm, &l->sizes, &how, &k.args, err) < 0 ||
	    make_folder(l, &k, err) < 0 || open_files(l, &k, err) < 0 || open_kvm(l, &k, err) < 0 ||
	    listen_qmp(l, &k, err) < 0 || join_cgroup(l, err) < 0 ||
	    spawn(l, &k, &ret->pid, &ret->fds[0], err) < 0)
		return err_wrap(err, "start %s", l->record.id);
	ret->n_fds = 1;
	return 0;
}
