/* host.c - what a host must have to run sandboxes, one function each. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/kvm_probe.h"
#include "base/read_all.h"
#include "cli/doctor.h"

enum {
	KERNEL_MAJOR = 5,
	KERNEL_MINOR = 12, /* mount_setattr */
	QEMU_MAJOR = 8,
	QEMU_MINOR = 2,
	PROGRAM_MS = 10 * 1000, /* a program that is only asked for its version */
	DESCRIPTORS = 65536,    /* 10,000 streams need two each, and VMs a few more */
	DESCRIPTORS_LEAST = 4096,
	DISK_GIB = 20,
	DISK_GIB_LEAST = 2,
	MEMORY_MIB = 2048,
	LANDLOCK_VERSION_FLAG = 1,
	PATH_TEXT_MAX = 4096,
};

static void look_accelerator(struct finding *f)
{
	struct err err = { 0 };

	if (kvm_probe(&err) == 0)
		finding_set(f, VERDICT_OK, NULL, "KVM ran a test guest");
	else
		finding_set(f, VERDICT_WARN,
			    "use a machine with VT-x or AMD-V and load kvm_intel or kvm_amd; with "
			    "allow_emulation = yes it runs slowly, without a security boundary",
			    "no KVM: %s", err.msg);
}

/* "6.12.3-amd64": the two numbers in front. */
static bool two_numbers(const char *text, unsigned long *ret_major, unsigned long *ret_minor)
{
	char *end;

	*ret_major = strtoul(text, &end, 10);
	if (end == text || *end != '.')
		return false;
	text = end + 1;
	*ret_minor = strtoul(text, &end, 10);
	return end != text;
}

static bool at_least(unsigned long major, unsigned long minor, unsigned long want_major,
		     unsigned long want_minor)
{
	return major > want_major || (major == want_major && minor >= want_minor);
}

static void look_kernel(struct finding *f)
{
	struct utsname u;
	unsigned long major, minor;
	bool known = uname(&u) == 0 && two_numbers(u.release, &major, &minor);

	if (known && at_least(major, minor, KERNEL_MAJOR, KERNEL_MINOR))
		finding_set(f, VERDICT_OK, NULL, "Linux %s", u.release);
	else
		finding_set(f, VERDICT_FAIL, "install a newer kernel",
			    "Linux %s; 5.12 or newer is needed", known ? u.release : "?");
}

static void look_namespaces(struct finding *f)
{
	static const char *const kinds[] = { "net", "pid", "mnt", "ipc", "uts" };

	for (size_t i = 0; i < COUNT(kinds); i++) {
		char path[64];

		snprintf(path, sizeof(path), "/proc/self/ns/%s", kinds[i]);
		if (access(path, F_OK) < 0) {
			finding_set(f, VERDICT_FAIL, "use a kernel with all namespaces",
				    "no %s namespaces", kinds[i]);
			return;
		}
	}
	finding_set(f, VERDICT_OK, NULL, "net, pid, mnt, ipc, uts");
}

static void look_seccomp(struct finding *f)
{
	uint32_t action = SECCOMP_RET_USER_NOTIF;

	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		finding_set(f, VERDICT_OK, NULL, "filters and notification");
	else
		finding_set(f, VERDICT_FAIL,
			    "use a kernel with CONFIG_SECCOMP_FILTER, 5.0 or newer",
			    "no seccomp notification: %s", strerror(errno));
}

static void look_landlock(struct finding *f)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);

	if (version >= 1)
		finding_set(f, VERDICT_OK, NULL, "version %ld", version);
	else
		finding_set(f, VERDICT_WARN,
			    "use a kernel with CONFIG_SECURITY_LANDLOCK and lsm=landlock,...",
			    "not there: daemons are confined without it");
}

static void look_tun(struct finding *f)
{
	if (access("/dev/net/tun", F_OK) == 0)
		finding_set(f, VERDICT_OK, NULL, "/dev/net/tun");
	else
		finding_set(f, VERDICT_FAIL, "modprobe tun", "/dev/net/tun: %s", strerror(errno));
}

/* Is `word` one of the words of `text`? */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += n)
		if ((p == text || p[-1] == ' ') && (!p[n] || p[n] == ' ' || p[n] == '\n'))
			return true;
	return false;
}

static void look_cgroups(struct finding *f)
{
	static const char *const need[] = { "memory", "cpu", "pids" };
	static const char fix[] = "boot with the controllers memory, cpu and pids; "
				  "best is cgroup v2 alone, as systemd does it";
	char controllers[512], path[64];
	bool v2 = read_text(AT_FDCWD, "/sys/fs/cgroup/cgroup.controllers", controllers,
			    sizeof(controllers)) >= 0;

	for (size_t i = 0; i < COUNT(need); i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", need[i]);
		if (v2 ? has_word(controllers, need[i]) : access(path, F_OK) == 0)
			continue;
		finding_set(f, VERDICT_FAIL, fix, "no controller %s (%s)", need[i],
			    v2 ? "v2" : "v1");
		return;
	}
	finding_set(f, VERDICT_OK, NULL, "%s with memory, cpu, pids", v2 ? "v2" : "v1");
}

static void look_descriptors(struct finding *f)
{
	static const char fix[] = "raise the hard limit: LimitNOFILE=1048576 in the units, "
				  "or ulimit -Hn";
	struct rlimit limit = { 0 };
	unsigned long long most;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit.rlim_max = 0;
	most = (unsigned long long)limit.rlim_max;
	if (most >= DESCRIPTORS)
		finding_set(f, VERDICT_OK, NULL, "%llu per process", most);
	else
		finding_set(f, most >= DESCRIPTORS_LEAST ? VERDICT_WARN : VERDICT_FAIL, fix,
			    "%llu per process; 65536 or more are wanted", most);
}

/* The folder, or what there is above it: it may not have been made yet. */
static bool free_bytes(const char *folder, unsigned long long *ret)
{
	char path[PATH_TEXT_MAX];
	struct statvfs v;

	snprintf(path, sizeof(path), "%s", folder);
	while (statvfs(path, &v) < 0) {
		char *slash = strrchr(path, '/');

		if (errno != ENOENT || !slash || !path[1])
			return false;
		slash[slash == path ? 1 : 0] = '\0';
	}
	*ret = (unsigned long long)v.f_bavail * v.f_frsize;
	return true;
}

static void look_disk(struct finding *f)
{
	static const char fix[] = "give state_dir a larger disk";
	unsigned long long free_gib = 0;

	if (!free_bytes(f->cli->state_dir, &free_gib)) {
		finding_set(f, VERDICT_FAIL, "name it with --state", "%.128s: %s",
			    f->cli->state_dir, strerror(errno));
		return;
	}
	free_gib >>= 30;
	if (free_gib >= DISK_GIB)
		finding_set(f, VERDICT_OK, NULL, "%llu GiB free for %.128s", free_gib,
			    f->cli->state_dir);
	else
		finding_set(f, free_gib >= DISK_GIB_LEAST ? VERDICT_WARN : VERDICT_FAIL, fix,
			    "%llu GiB free for %.128s; 20 or more are wanted", free_gib,
			    f->cli->state_dir);
}

static void look_memory(struct finding *f)
{
	char text[4096];
	const char *line;
	unsigned long mib = 0;

	if (read_text(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) >= 0) {
		line = strstr(text, "MemAvailable:");
		mib = line ? strtoul(line + strlen("MemAvailable:"), NULL, 10) >> 10 : 0;
	}
	finding_set(f, mib >= MEMORY_MIB ? VERDICT_OK : VERDICT_WARN,
		    "a sandbox needs about 20 MiB when idle and all of its memory when busy",
		    "%lu MiB available", mib);
}

/* Until it is said, there is no room, or the time is over. How much was said. */
static size_t read_said(int fd, char *ret, size_t size)
{
	uint64_t end = clock_mono_ns() + PROGRAM_MS * NSEC_PER_MSEC, now;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len < size && (now = clock_mono_ns()) < end &&
	       poll(&p, 1, (int)((end - now) / NSEC_PER_MSEC)) == 1) {
		ssize_t n = read(fd, ret + len, size - len);

		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return len;
}

bool program_output(const char *const *argv, char *ret, size_t size)
{
	posix_spawn_file_actions_t actions;
	int ends[2];
	pid_t pid;
	bool began;
	size_t n = 0;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	began = posix_spawn(&pid, argv[0], &actions, NULL, (char *const *)(uintptr_t)argv,
			    environ) == 0;
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	if (began) {
		n = read_said(ends[0], ret, size - 1);
		kill(pid, SIGKILL); /* it said what we wanted, or never will */
		waitpid(pid, NULL, 0);
	}
	close(ends[0]);
	ret[n] = '\0';
	return n > 0;
}

static void look_qemu(struct finding *f)
{
	static const char fix[] = "install qemu-system-x86 8.2 or newer: Debian 13, Ubuntu 24.04, "
				  "or Debian 12 with backports";
	const char *const argv[] = { f->cli->qemu, "--version", NULL };
	unsigned long major, minor;
	char text[512];
	const char *version;

	if (!program_output(argv, text, sizeof(text))) {
		finding_set(f, VERDICT_FAIL, fix, "%.128s does not run", f->cli->qemu);
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	version = strstr(text, "version ");
	if (version && two_numbers(version + strlen("version "), &major, &minor) &&
	    at_least(major, minor, QEMU_MAJOR, QEMU_MINOR))
		finding_set(f, VERDICT_OK, NULL, "%.200s", text);
	else
		finding_set(f, VERDICT_FAIL, fix, "%.200s; 8.2 or newer is needed", text);
}

static void look_nft(struct finding *f)
{
	static const char *const argv[] = { "/usr/sbin/nft", "--version", NULL };
	char text[256];

	if (program_output(argv, text, sizeof(text))) {
		text[strcspn(text, "\n")] = '\0';
		finding_set(f, VERDICT_OK, NULL, "%.200s", text);
	} else {
		finding_set(f, VERDICT_FAIL, "install nftables", "%s does not run", argv[0]);
	}
}

const struct check host_checks[] = {
	{ "accelerator", look_accelerator },
	{ "kernel", look_kernel },
	{ "namespaces", look_namespaces },
	{ "seccomp", look_seccomp },
	{ "landlock", look_landlock },
	{ "tun", look_tun },
	{ "cgroups", look_cgroups },
	{ "descriptors", look_descriptors },
	{ "disk", look_disk },
	{ "memory", look_memory },
	{ "qemu", look_qemu },
	{ "nft", look_nft },
};
const size_t n_host_checks = COUNT(host_checks);
