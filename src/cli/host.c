/* host.c - what the kernel and its programs must be able to do, one function each. What can be
 * tried is tried. */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "base/kvm_probe.h"
#include "base/read_all.h"
#include "cli/doctor.h"
#include "cli/program.h"

enum {
	KERNEL_MAJOR = 5,
	KERNEL_MINOR = 12, /* mount_setattr */
	QEMU_MAJOR = 8,
	QEMU_MINOR = 2,
	QEMU_MICRO_UNRELEASED = 50, /* development; release candidates are 90 and up */
	LANDLOCK_VERSION_FLAG = 1,
	CPUINFO_MAX = 16384,
};

/* --- KVM ------------------------------------------------------------------------------------ */

static bool is_a_vm(void)
{
	char text[CPUINFO_MAX];

	return read_text(AT_FDCWD, "/proc/cpuinfo", text, sizeof(text)) >= 0 &&
	       strstr(text, " hypervisor ");
}

static const char *kvm_fix(const struct err *err)
{
	if (access("/dev/kvm", F_OK) == 0 && (err->sys == EACCES || err->sys == EPERM))
		return "run it as root; hotcell-warden does. If that is refused, too: the owner of "
		       "/dev/kvm is root and its group kvm, mode 0660 (udev's rule of "
		       "qemu-system-x86 or systemd); in a container let the device in";
	if (err->sys == ENOENT)
		return "modprobe kvm_intel or kvm_amd; in a virtual machine switch nested "
		       "virtualization on in the hypervisor above; with allow_emulation = yes "
		       "of warden.conf it runs slowly, without a security boundary";
	return "use a machine with VT-x or AMD-V, switch it on in the firmware (in a virtual "
	       "machine: nested virtualization, in the hypervisor above), and load kvm_intel or "
	       "kvm_amd; with allow_emulation = yes of warden.conf it runs slowly, without a "
	       "security boundary";
}

static void look_accelerator(const struct told *t, struct finding *f)
{
	/* where it is installed and emulation is not accepted, warden does not start */
	bool fatal =
		!t->before && t->places.folders[FOLDER_STATE].configured && !t->places.emulation;
	struct err err = { 0 };

	if (kvm_probe(&err) < 0)
		finding_set(f, fatal ? VERDICT_FAIL : VERDICT_WARN, kvm_fix(&err), "no KVM: %s",
			    err.msg);
	else if (is_a_vm())
		finding_set(f, VERDICT_OK, NULL,
			    "KVM ran a test guest; this host is itself a virtual machine (nested)");
	else
		finding_set(f, VERDICT_OK, NULL, "KVM ran a test guest");
}

/* --- the kernel ----------------------------------------------------------------------------- */

/* "6.12.3-amd64": the numbers in front. How many there are. */
static size_t numbers(const char *text, unsigned long ret[static 3])
{
	size_t n = 0;
	char *end;

	while (n < 3) {
		ret[n] = strtoul(text, &end, 10);
		if (end == text)
			return n;
		n++;
		if (*end != '.')
			break;
		text = end + 1;
	}
	return n;
}

static bool at_least(const unsigned long v[static 2], unsigned long major, unsigned long minor)
{
	return v[0] > major || (v[0] == major && v[1] >= minor);
}

static void look_kernel(const struct told *t, struct finding *f)
{
	struct utsname u;
	unsigned long v[3] = { 0 };
	bool known = uname(&u) == 0 && numbers(u.release, v) >= 2;

	(void)t;
	if (known && strcmp(u.machine, "x86_64") != 0)
		finding_set(f, VERDICT_FAIL, "use a machine with an x86-64 processor",
			    "%s; x86_64 is needed", u.machine);
	else if (known && at_least(v, KERNEL_MAJOR, KERNEL_MINOR))
		finding_set(f, VERDICT_OK, NULL, "Linux %s", u.release);
	else
		finding_set(f, VERDICT_FAIL, "install a newer kernel",
			    "Linux %s; 5.12 or newer is needed", known ? u.release : "?");
}

static void look_namespaces(const struct told *t, struct finding *f)
{
	static const char *const kinds[] = { "net", "pid", "mnt", "ipc", "uts" };

	(void)t;
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

/* Asked for something that makes no sense, one that is there says so. */
static void look_calls(const struct told *t, struct finding *f)
{
	static const struct {
		const char *name;
		long number;
	} calls[] = {
		{ "mount_setattr", SYS_mount_setattr },
		{ "open_tree", SYS_open_tree },
		{ "move_mount", SYS_move_mount },
		{ "pidfd_open", SYS_pidfd_open },
		{ "pidfd_send_signal", SYS_pidfd_send_signal },
		{ "clone3", SYS_clone3 },
		{ "openat2", SYS_openat2 },
		{ "memfd_create", SYS_memfd_create },
	};
	static const char fix[] = "use a kernel that has them; in a container, let its filter of "
				  "system calls pass them (Docker: --security-opt "
				  "seccomp=unconfined), or better run Hotcell on the host";

	(void)t;
	for (size_t i = 0; i < COUNT(calls); i++) {
		if (syscall(calls[i].number, -1, NULL, 0, 0, 0, 0) >= 0 ||
		    (errno != ENOSYS && (errno != EPERM || geteuid() != 0)))
			continue;
		finding_add(f, VERDICT_FAIL, fix, "%s: %s", calls[i].name, strerror(errno));
	}
	if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL, "all that warden needs");
}

static void look_seccomp(const struct told *t, struct finding *f)
{
	uint32_t action = SECCOMP_RET_USER_NOTIF;

	(void)t;
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		finding_set(f, VERDICT_OK, NULL, "filters and notification");
	else
		finding_set(f, VERDICT_FAIL,
			    "use a kernel with CONFIG_SECCOMP_FILTER, 5.0 or newer",
			    "no seccomp notification: %s", strerror(errno));
}

static void look_landlock(const struct told *t, struct finding *f)
{
	long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION_FLAG);

	(void)t;
	if (version >= 1)
		finding_set(f, VERDICT_OK, NULL, "version %ld", version);
	else
		finding_set(f, VERDICT_WARN,
			    "use a kernel with CONFIG_SECURITY_LANDLOCK and lsm=landlock,...",
			    "not there: daemons are confined without it");
}

static const char *tun_fix(int error)
{
	if (error == ENOENT || error == ENODEV || error == ENXIO)
		return "modprobe tun (and a line `tun` in /etc/modules-load.d/tun.conf); in a "
		       "container let the device in";
	return "run it as root; /dev/net/tun is a character device 10:200 that root may read and "
	       "write";
}

static void look_tun(const struct told *t, struct finding *f)
{
	AUTO(auto_close) int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	int error = errno;
	unsigned int features = 0;

	(void)t;
	if (fd < 0) {
		bool unknown = error == EACCES && geteuid() != 0;

		finding_set(f, unknown ? VERDICT_WARN : VERDICT_FAIL, tun_fix(error),
			    "/dev/net/tun: %s", strerror(error));
		return;
	}
	if (ioctl(fd, TUNGETFEATURES, &features) < 0 || !(features & IFF_TAP))
		finding_set(f, VERDICT_FAIL, tun_fix(ENODEV),
			    "/dev/net/tun is not the kernel's: it makes no interfaces");
	else
		finding_set(f, VERDICT_OK, NULL, "/dev/net/tun makes interfaces");
}

/* --- programs ------------------------------------------------------------------------------- */

/* Versions that work and should not be used. */
static const char *bad_qemu(const unsigned long v[static 3])
{
	return v[2] >= QEMU_MICRO_UNRELEASED ? "was never released: a state of development, or a "
					       "release candidate"
					     : NULL;
}

/* Warden goes on with the one that it started with; what is saved fits that one alone. "": it is
 * the one on the disk, or nobody says. */
static const char *old_qemu(const struct told *t, const char *installed)
{
	const char *used = json_string_value(json_object_get(t->node, "qemu"));

	return used && used[0] && strncmp(used, installed, strlen(used)) != 0 ? used : "";
}

static void look_qemu(const struct told *t, struct finding *f)
{
	static const char fix_old[] = "resume paused sandboxes that matter (later they boot from "
				      "their disks), then systemctl restart hotcell-warden: see "
				      "Upgrade in docs/operations.md";
	static const char fix[] = "install qemu-system-x86 8.2 or newer: Debian 13, Ubuntu 24.04, "
				  "or Debian 12 with backports; or name another with qemu of "
				  "warden.conf";
	const char *const argv[] = { t->places.qemu, "--version", NULL };
	unsigned long v[3] = { 0 };
	char text[512];
	const char *version;

	if (!program_output(argv, text, sizeof(text))) {
		finding_set(f, VERDICT_FAIL, fix, "%.128s %.128s", t->places.qemu, text);
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	version = strstr(text, "version ");
	if (!version || numbers(version + strlen("version "), v) < 2 ||
	    !at_least(v, QEMU_MAJOR, QEMU_MINOR))
		finding_set(f, VERDICT_FAIL, fix, "%.200s; 8.2 or newer is needed", text);
	else if (bad_qemu(v))
		finding_set(f, VERDICT_WARN, "install a release of the distribution's", "%.200s %s",
			    text, bad_qemu(v));
	else if (old_qemu(t, text)[0])
		finding_set(f, VERDICT_WARN, fix_old,
			    "it was upgraded to %.90s; warden uses %.90s until it is restarted: "
			    "what is saved fits that one alone",
			    version, old_qemu(t, text));
	else
		finding_set(f, VERDICT_OK, NULL, "%.200s", text);
}

/* Rules of the kinds that a sandbox's network has, in a network that ends with the program. */
#define NFT_TRY                                                                          \
	"add table inet hotcell_try; "                                                   \
	"add chain inet hotcell_try doors { type nat hook prerouting priority -100; }; " \
	"add rule inet hotcell_try doors meta l4proto tcp redirect to :1"

static void look_nft(const struct told *t, struct finding *f)
{
	static const char *const version[] = { "/usr/sbin/nft", "--version", NULL };
	static const char *const try[] = { "/usr/sbin/nft", "-e", NFT_TRY, NULL };
	char text[256], said[512];

	(void)t;
	if (!program_output(version, text, sizeof(text))) {
		finding_set(f, VERDICT_FAIL, "install nftables", "%s %s", version[0], text);
		return;
	}
	text[strcspn(text, "\n")] = '\0';
	if (geteuid() != 0) {
		finding_set(f, VERDICT_WARN, "run it as root", "%.200s; only root can load rules",
			    text);
		return;
	}
	if (program_output_apart(try, said, sizeof(said)) && strstr(said, "redirect")) {
		finding_set(f, VERDICT_OK, NULL, "%.200s loads rules", text);
		return;
	}
	said[strcspn(said, "\n")] = '\0';
	finding_set(f, VERDICT_FAIL,
		    "use a kernel with nftables (modprobe nf_tables nft_redir nft_chain_nat); in a "
		    "container it needs CAP_NET_ADMIN",
		    "%.200s loads no rules in a network of its own: %.200s", text, said);
}

static const struct check checks[] = {
	{ "accelerator", look_accelerator, CHECK_ALWAYS },
	{ "kernel", look_kernel, CHECK_ALWAYS },
	{ "namespaces", look_namespaces, CHECK_ALWAYS },
	{ "calls", look_calls, CHECK_ALWAYS },
	{ "seccomp", look_seccomp, CHECK_ALWAYS },
	{ "landlock", look_landlock, CHECK_ALWAYS },
	{ "tun", look_tun, CHECK_ALWAYS },
	{ "qemu", look_qemu, CHECK_ALWAYS },
	{ "nft", look_nft, CHECK_ALWAYS },
};
const struct checks host_checks = { checks, COUNT(checks) };
