/* jail_calls.c - each forbidden call, with arguments that an unfiltered kernel would not answer
 * with the same error, as far as such arguments exist. */
#include "jail_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <linux/userfaultfd.h>
#include <linux/vm_sockets.h>
#include <mqueue.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>

enum { TAP_FD = 4, OVERLAY_FD = 6, X32_BIT = 0x40000000, I386_GETPID = 20, WORD_MAX = 64 };

static void say(const char *name, long result)
{
	printf("{\"call\": \"%s\", \"result\": %ld, \"errno\": %d}\n", name,
	       result < 0 ? -1 : result, result < 0 ? errno : 0);
}

long calls_i386_getpid(void)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(I386_GETPID) : "memory");
	return result;
}

long calls_x32_getpid(void)
{
	return syscall(X32_BIT | SYS_getpid);
}

/* --- other processes, the kernel's own knobs ------------------------------------------------- */

static void try_tracing(void)
{
	char from[8] = "data", to[8];
	struct iovec here = { from, sizeof(from) }, there = { to, sizeof(to) };
	struct perf_event_attr perf = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(perf),
					.config = PERF_COUNT_SW_DUMMY,
					.exclude_kernel = 1 };

	say("ptrace", ptrace(PTRACE_TRACEME, 0, NULL, NULL));
	say("process_vm_readv", process_vm_readv(getpid(), &there, 1, &here, 1, 0));
	say("process_vm_writev", process_vm_writev(getpid(), &here, 1, &there, 1, 0));
	say("userfaultfd", syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY));
	say("pidfd_getfd", syscall(SYS_pidfd_getfd, -1, 0, 0));
	say("kcmp", syscall(SYS_kcmp, getpid(), getpid(), 0, 0, 1));
	say("perf_event_open", syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0));
	say("bpf", syscall(SYS_bpf, -1, NULL, 0));
	say("syslog", syscall(SYS_syslog, -1, NULL, 0));
}

static void try_kernel(void)
{
	struct io_uring_params ring = { 0 };
	char ldt[8];

	say("io_uring_setup", syscall(SYS_io_uring_setup, 1, &ring));
	say("io_uring_enter", syscall(SYS_io_uring_enter, -1, 0, 0, 0, NULL, 0));
	say("io_uring_register", syscall(SYS_io_uring_register, -1, 0, NULL, 0));
	say("keyctl", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1));
	say("add_key", syscall(SYS_add_key, "user", "x", "y", 1, KEY_SPEC_PROCESS_KEYRING));
	say("request_key", syscall(SYS_request_key, "user", "x", NULL, 0));
	say("personality", syscall(SYS_personality, 0xffffffff));
	say("modify_ldt", syscall(SYS_modify_ldt, 0, ldt, sizeof(ldt)));
	say("finit_module", syscall(SYS_finit_module, -1, "", 0));
	say("kexec_file_load", syscall(SYS_kexec_file_load, -1, -1, 0, "", 0));
	say("reboot", syscall(SYS_reboot, 0, 0, 0, NULL));
	say("iopl", syscall(SYS_iopl, 3));
	say("ioperm", syscall(SYS_ioperm, 0, 1, 1));
	say("clock_settime", syscall(SYS_clock_settime, -1, NULL));
}

/* Who else starts, ends or opens a file that several VMs see. */
static void try_watching(void)
{
	say("inotify_init", syscall(SYS_inotify_init));
	say("inotify_init1", inotify_init1(IN_CLOEXEC));
	say("fanotify_init", syscall(SYS_fanotify_init, FAN_CLASS_NOTIF | FAN_REPORT_FID, 0));
}

/* A limit of 0 is none for a host that pipes cores to a program: who lowers it to that has a core
 * written by root. */
static void try_core_limit(void)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit files;

	say("limit-core", syscall(SYS_setrlimit, RLIMIT_CORE, &none));
	say("limit-core-64", syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL));
	say("limit-core-high", syscall(SYS_prlimit64, 0, 1ull << 32 | RLIMIT_CORE, &none, NULL));
	say("limit-core-read", getrlimit(RLIMIT_CORE, &files));
	say("limit-files",
	    getrlimit(RLIMIT_NOFILE, &files) < 0 ? -1 : setrlimit(RLIMIT_NOFILE, &files));
}

static void try_namespaces(void)
{
	struct mount_attr attr = { 0 };

	say("unshare", unshare(CLONE_FILES)); /* needs no privilege at all */
	say("unshare-user", unshare(CLONE_NEWUSER));
	say("setns", setns(-1, 0));
	say("mount", mount("none", "/vm", "tmpfs", 0, NULL));
	say("umount2", umount2("/vm", MNT_DETACH));
	say("pivot_root", syscall(SYS_pivot_root, "/vm", "/vm"));
	say("chroot", chroot("/vm"));
	say("open_tree", syscall(SYS_open_tree, AT_FDCWD, "/vm", 0));
	say("move_mount", syscall(SYS_move_mount, -1, "", -1, "", 0));
	say("fsopen", syscall(SYS_fsopen, "tmpfs", 0));
	say("fsmount", syscall(SYS_fsmount, -1, 0, 0));
	say("mount_setattr", syscall(SYS_mount_setattr, -1, "", 0, &attr, sizeof(attr)));
	say("name_to_handle_at", syscall(SYS_name_to_handle_at, AT_FDCWD, "/", NULL, NULL, 0));
	say("open_by_handle_at", syscall(SYS_open_by_handle_at, -1, NULL, 0));
	say("sethostname", sethostname("x", 1));
}

static void try_ids(void)
{
	say("setuid", syscall(SYS_setuid, getuid()));
	say("setgid", syscall(SYS_setgid, getgid()));
	say("setresuid", syscall(SYS_setresuid, -1, -1, -1));
	say("setgroups", syscall(SYS_setgroups, -1, NULL));
	say("capset", syscall(SYS_capset, NULL, NULL));
}

/* --- new processes ---------------------------------------------------------------------------- */

/* A child that should not exist leaves at once. */
static long no_child(long pid)
{
	if (pid == 0)
		_exit(0);
	return pid;
}

static void *thread_body(void *arg)
{
	*(int *)arg = 1;
	return NULL;
}

static void try_processes(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	pthread_t thread;
	int ran = 0;

	say("fork", no_child(syscall(SYS_fork)));
	say("vfork", no_child(syscall(SYS_vfork)));
	say("clone", no_child(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0)));
	say("clone-files",
	    no_child(syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL, NULL, 0)));
	say("clone-netns", no_child(syscall(SYS_clone, CLONE_NEWNET | CLONE_NEWUSER | SIGCHLD, NULL,
					    NULL, NULL, 0)));
	say("clone3", no_child(syscall(SYS_clone3, &args, sizeof(args))));
	if (pthread_create(&thread, NULL, thread_body, &ran) == 0)
		pthread_join(thread, NULL);
	say("thread", ran ? 0 : -1);
}

static void try_exec(const char *own_path)
{
	char *argv[] = { (char[]){ "x" }, NULL }, *none[] = { NULL };
	int self = open(own_path, O_RDONLY | O_CLOEXEC);
	int memory = memfd_create("x", 0);

	say("execve-self", execve(own_path, argv, none));
	say("execve-loader", execve("/lib64/ld-linux-x86-64.so.2", argv, none));
	say("execve-absent", execve("/bin/sh", argv, none));
	say("execveat-self", syscall(SYS_execveat, self, "", argv, none, AT_EMPTY_PATH));
	say("execveat-memfd", syscall(SYS_execveat, memory, "", argv, none, AT_EMPTY_PATH));
	close(self);
	close(memory);
}

/* Whoever answers for the filter's listener may let an exec pass. QEMU adds a filter without one.
 */
static void try_filters(void)
{
	struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog all = { 1, &pass };

	say("seccomp-listener",
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &all));
	say("seccomp-listener-tsync",
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC |
			    SECCOMP_FILTER_FLAG_TSYNC_ESRCH,
		    &all));
	say("seccomp", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all));
}

/* --- files that grow ------------------------------------------------------------------------ */

/* kernel ABI, of every file system: no header of libc or Linux has these for programs */
struct space {
	int16_t type, whence;
	int64_t start, len;
	int32_t sysid, pid, pad[4];
};
#define RESERVE      _IOW('X', 40, struct space)
#define RESERVE_64   _IOW('X', 42, struct space)
#define RESERVE_ZERO _IOW('X', 57, struct space)

/* Room beyond the end of a file, or before its beginning, which no limit of its size counts. */
void calls_grow(uint64_t limit)
{
	const off_t hole = 1 << 20, more = (off_t)limit * 2 / hole * hole;
	struct space room = { .len = more };
	struct stat st;

	say("keep-size", fallocate(OVERLAY_FD, FALLOC_FL_KEEP_SIZE, 0, more));
	say("keep-size-high",
	    syscall(SYS_fallocate, OVERLAY_FD, 1ull << 32 | FALLOC_FL_KEEP_SIZE, 0, more));
	say("zero-keep-size",
	    fallocate(OVERLAY_FD, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0, more));
	say("unshare",
	    fallocate(OVERLAY_FD, FALLOC_FL_UNSHARE_RANGE | FALLOC_FL_KEEP_SIZE, 0, more));
	say("insert", fallocate(OVERLAY_FD, FALLOC_FL_INSERT_RANGE, 0, more));
	say("reserve", ioctl(OVERLAY_FD, RESERVE, &room));
	say("reserve-64", ioctl(OVERLAY_FD, RESERVE_64, &room));
	say("reserve-high", syscall(SYS_ioctl, OVERLAY_FD, 1ull << 32 | RESERVE_64, &room));
	say("reserve-zero", ioctl(OVERLAY_FD, RESERVE_ZERO, &room));
	say("plain", fallocate(OVERLAY_FD, 0, 0, more));
	say("truncate", ftruncate(OVERLAY_FD, more));
	/* what QEMU does for its guest */
	say("within", fallocate(OVERLAY_FD, 0, 0, hole * 2));
	say("punch", fallocate(OVERLAY_FD, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, hole));
	say("zero", fallocate(OVERLAY_FD, FALLOC_FL_ZERO_RANGE, hole, hole));
	if (fstat(OVERLAY_FD, &st) == 0)
		printf("{\"fact\": \"allocated_mib\", \"value\": %ld}\n", st.st_blocks >> 11);
}

/* --- the network, and talk between processes ---------------------------------------------------
 */

static void try_sockets(void)
{
	int pair[2];

	say("socket-unix", socket(AF_UNIX, SOCK_STREAM, 0));
	say("socketpair-unix", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	say("socket-inet", socket(AF_INET, SOCK_STREAM, 0));
	say("socket-inet-datagram", socket(AF_INET, SOCK_DGRAM, 0));
	say("socket-inet6", socket(AF_INET6, SOCK_STREAM, 0));
	say("socket-netlink", socket(AF_NETLINK, SOCK_RAW, 0));
	say("socket-packet", socket(AF_PACKET, SOCK_RAW, 0));
	say("socket-vsock", socket(AF_VSOCK, SOCK_STREAM, 0));
	say("socket-alg", socket(AF_ALG, SOCK_SEQPACKET, 0));
	say("socket-bluetooth", socket(AF_BLUETOOTH, SOCK_RAW, 0));
	say("socketpair-inet", socketpair(AF_INET, SOCK_STREAM, 0, pair));
	say("socketpair-inet6", socketpair(AF_INET6, SOCK_STREAM, 0, pair));
	say("socketpair-netlink", socketpair(AF_NETLINK, SOCK_RAW, 0, pair));
	say("socketpair-vsock", socketpair(AF_VSOCK, SOCK_STREAM, 0, pair));
	say("socketpair-tipc", socketpair(AF_TIPC, SOCK_STREAM, 0, pair));
	say("interfaces", if_nameindex() ? 0 : -1);
}

static void try_tap(void)
{
	struct ifreq req = { 0 };

	say("tap-name", ioctl(TAP_FD, TUNGETIFF, &req));
	printf("{\"tap\": \"%s\"}\n", req.ifr_name);
	say("tap-namespace", ioctl(TAP_FD, SIOCGSKNS));
}

/* The next word of `text`, cut off; "" at the end. */
static const char *next_word(char **text)
{
	char *word = *text;
	size_t len = strcspn(word, " \n");

	*text = word + len + (word[len] != '\0');
	word[len] = '\0';
	return word;
}

static void try_host_objects(char *text)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM, 0);
	const char *name = next_word(&text);
	key_t key = (key_t)strtol(next_word(&text), NULL, 10);
	const char *queue = next_word(&text);
	int len = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", name);

	say("abstract-socket",
	    connect(sock, (const struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1) + (socklen_t)len));
	close(sock);
	say("host-shm", shmget(key, 0, 0));
	say("host-sem", semget(key, 0, 0));
	say("host-msg", msgget(key, 0));
	say("host-queue", mq_open(queue, O_RDONLY));
}

void calls_try(const char *own_path, const char *text)
{
	char copy[WORD_MAX * 4];
	char *rest = copy;

	snprintf(copy, sizeof(copy), "%s", text);
	next_word(&rest); /* the scenario */
	try_tracing();
	try_kernel();
	try_watching();
	try_core_limit();
	try_namespaces();
	try_ids();
	try_processes();
	try_exec(own_path);
	try_filters();
	try_sockets();
	try_tap();
	try_host_objects(rest);
}
