/* guest.c - the machine as init makes it: file systems, kernel, cgroups, network. */
#include "agent/machine/guest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agent/machine/files_small.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/log.h"

/* --- file systems that are not on the disk -------------------------------------------------- */

enum { PERSONAL_MAX = 64 * 1024 };

static const struct {
	const char *type, *at, *options;
	unsigned long flags;
	mode_t mode; /* of the directory, if it has to be made */
} mounts[] = {
	{ "proc", "/proc", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, 0555 },
	{ "sysfs", "/sys", NULL, MS_NOSUID | MS_NODEV | MS_NOEXEC, 0555 },
	{ "devtmpfs", "/dev", "mode=0755", MS_NOSUID, 0755 },
	{ "devpts", "/dev/pts", "gid=5,mode=620,ptmxmode=666", MS_NOSUID | MS_NOEXEC, 0755 },
	{ "tmpfs", "/dev/shm", "mode=1777,size=50%", MS_NOSUID | MS_NODEV, 01777 },
	{ "tmpfs", "/run", "mode=0755,size=20%", MS_NOSUID | MS_NODEV | MS_NOATIME, 0755 },
	/* of their own, so that nobody who fills one of them takes away what the others need */
	{ "tmpfs", "/run/lock", "mode=1777,size=4m", MS_NOSUID | MS_NODEV | MS_NOEXEC, 01777 },
	{ "tmpfs", "/run/hotcell", "mode=0755,size=12m",
	  MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, 0755 },
	{ "cgroup2", GUEST_CGROUPS, "nsdelegate", MS_NOSUID | MS_NODEV | MS_NOEXEC, 0755 },
};

static const struct {
	const char *at;
	mode_t mode;
} dirs[] = {
	{ "/tmp", 01777 },        { "/var/tmp", 01777 }, { "/run/lock", 01777 },
	{ "/run/hotcell", 0755 }, { "/run/e2b", 0755 },
};

/* The kernel makes nodes for devices, not these. */
static const struct {
	const char *at, *to;
} links[] = {
	{ "/dev/fd", "/proc/self/fd" },
	{ "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" },
	{ "/dev/stderr", "/proc/self/fd/2" },
};

static void make_dir(const char *at, mode_t mode)
{
	if (mkdir(at, mode) < 0 && errno != EEXIST)
		log_error("make %s: %s", at, strerror(errno));
	else if (chmod(at, mode) < 0)
		log_error("set the mode of %s: %s", at, strerror(errno));
}

static void mount_all(void)
{
	for (size_t i = 0; i < COUNT(mounts); i++) {
		(void)mkdir(mounts[i].at, mounts[i].mode);
		/* the kernel may have mounted /dev itself */
		if (mount(mounts[i].type, mounts[i].at, mounts[i].type, mounts[i].flags,
			  mounts[i].options) < 0 &&
		    errno != EBUSY)
			log_error("mount %s: %s", mounts[i].at, strerror(errno));
	}
}

/* Without a console the kernel starts init with no descriptors at all. */
static void ensure_stdio(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd < 3);
	if (fd >= 3)
		close(fd);
}

/* Every sandbox gets its own of these as its first act. In memory that costs no disk, no journal
 * and nothing to write back. */
static const struct {
	const char *at, *kept;
} personal[] = {
	{ "/etc/hostname", "/run/hotcell/hostname" },
	{ "/etc/hosts", "/run/hotcell/hosts" },
	{ "/etc/machine-id", "/run/hotcell/machine-id" },
	{ "/proc/sys/kernel/random/boot_id", "/run/hotcell/boot_id" },
};

static int keep_in_memory(const char *at, const char *kept, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_MAX(PERSONAL_MAX);

	/* a missing one is made, for the mount to stand on */
	if (file_read(at, &text, err) < 0 &&
	    (err->code != ERR_NOT_FOUND || file_settle(at, buf_view(&text), 0644, err) < 0))
		return -1;
	if (file_prepare(kept, buf_view(&text), 0644, err) < 0)
		return -1;
	if (mount(kept, at, NULL, MS_BIND, NULL) < 0)
		return err_set(err, ERR_INTERNAL, errno, "mount %s", at);
	return 0;
}

static void keep_personal_files(void)
{
	for (size_t i = 0; i < COUNT(personal); i++) {
		struct err err = { 0 };

		if (keep_in_memory(personal[i].at, personal[i].kept, &err) < 0)
			log_error("keep %s in memory: %s", personal[i].at, err.msg);
	}
}

void guest_mount(void)
{
	/* the disk may have been mounted read-only; and reading a file must not write to it */
	if (mount(NULL, "/", NULL, MS_REMOUNT | MS_NOATIME, "noinit_itable") < 0)
		log_error("make / writable: %s", strerror(errno));
	mount_all();
	ensure_stdio();
	for (size_t i = 0; i < COUNT(dirs); i++)
		make_dir(dirs[i].at, dirs[i].mode);
	for (size_t i = 0; i < COUNT(links); i++)
		if (symlink(links[i].to, links[i].at) < 0 && errno != EEXIST)
			log_error("link %s: %s", links[i].at, strerror(errno));
	keep_personal_files();
}

/* --- parameters of the kernel, and the host name -------------------------------------------- */

enum { NOFILE_HARD = 1024 * 1024, HOSTNAME_TEXT_MAX = 64 };

static const struct {
	const char *path, *value;
} settings[] = {
	/* tools that watch source trees, each with its own instance */
	{ "/proc/sys/fs/inotify/max_user_watches", "1048576" },
	{ "/proc/sys/fs/inotify/max_user_instances", "8192" },
	{ "/proc/sys/fs/inotify/max_queued_events", "65536" },
	{ "/proc/sys/net/ipv4/ping_group_range", "0 2147483647" },
	/* what is not reachable need not be solicited: an idle guest shall be silent */
	{ "/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "1" },
	{ "/proc/sys/vm/stat_interval", "60" }, /* seconds; every one of them is a wake-up */
	{ "/proc/self/oom_score_adj", "-1000" },
};

static void apply(const char *path, const char *value)
{
	struct err err;

	if (file_poke(path, bytes_str(value), &err) < 0 && err.code != ERR_NOT_FOUND)
		log_error("%s", err.msg);
}

static void set_hostname_from_file(void)
{
	AUTO(buf_done) struct buf text = BUF_MAX(HOSTNAME_TEXT_MAX);
	struct bytes name, rest;
	struct err err;

	if (file_read_if_any("/etc/hostname", &text, &err) < 0) {
		log_error("%s", err.msg);
		return;
	}
	rest = buf_view(&text);
	name = rest;
	(void)bytes_cut(&rest, '\n', &name);
	if (name.len > 0 && sethostname((const char *)name.ptr, name.len) < 0)
		log_error("set the host name: %s", strerror(errno));
}

/* Programs start with a low soft limit, and may raise it up to this. */
static void raise_nofile(void)
{
	const struct rlimit n = { .rlim_cur = NOFILE_HARD, .rlim_max = NOFILE_HARD };

	if (setrlimit(RLIMIT_NOFILE, &n) < 0)
		log_error("raise the limit of descriptors: %s", strerror(errno));
}

void guest_tune(void)
{
	for (size_t i = 0; i < COUNT(settings); i++)
		apply(settings[i].path, settings[i].value);
	set_hostname_from_file();
	raise_nofile();
}

/* --- two cgroups ---------------------------------------------------------------------------- */

/* What the user's processes may not take from the agent: all of what they use is counted in `user`,
 * so it ends there: memory at memory.max, below what the machine has, processes at pids.max. What
 * is left is enough for the agent to answer and to be started again. On the disk the file system
 * keeps some blocks for root. */

enum {
	KIB_PER_MIB = 1024,
	AGENT_MIB = 16,        /* never taken from the agent, however short memory is */
	RESERVE_PART = 16,     /* of the machine's memory is not for the user */
	RESERVE_MIN_MIB = 24,  /* but at least */
	RESERVE_MAX_MIB = 128, /* and at most */
	TEXT_MAX = 64,
	MEMINFO_MAX = 8192,
};

static void apply_number(const char *path, uint64_t value)
{
	char text[TEXT_MAX];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	apply(path, text);
}

static uint64_t read_number(const char *path, uint64_t fallback)
{
	AUTO(buf_done) struct buf text = BUF_MAX(TEXT_MAX);
	struct bytes rest, number;
	struct err err;
	uint64_t n;

	if (file_read_if_any(path, &text, &err) < 0)
		return fallback;
	rest = buf_view(&text);
	return bytes_cut(&rest, '\n', &number) && bytes_to_u64(number, &n) ? n : fallback;
}

/* A fork bomb fills its cgroup and leaves room for the agent, and for one to be started again. */
static void limit_pids(void)
{
	uint64_t threads = read_number("/proc/sys/kernel/threads-max", 4096);
	uint64_t pids = read_number("/proc/sys/kernel/pid_max", 32768);

	apply_number(GUEST_USER_CGROUP "/pids.max", (threads < pids ? threads : pids) / 8 * 7);
}

/* "MemTotal:         503124 kB" is the first line. 0: it is not. */
static uint64_t memory_kib(void)
{
	AUTO(buf_done) struct buf text = BUF_MAX(MEMINFO_MAX);
	struct bytes rest, line, word;
	struct err err;
	uint64_t n;

	if (file_read_if_any("/proc/meminfo", &text, &err) < 0)
		return 0;
	rest = buf_view(&text);
	if (!bytes_cut(&rest, '\n', &line) || !bytes_cut(&line, ':', &word) ||
	    !bytes_eq(word, BYTES_LIT("MemTotal")))
		return 0;
	line = bytes_trim(line);
	return bytes_cut(&line, ' ', &word) && bytes_to_u64(word, &n) ? n : 0;
}

static void limit_memory(void)
{
	uint64_t all = memory_kib(), reserve = all / RESERVE_PART;

	apply_number(GUEST_AGENT_CGROUP "/memory.min", (uint64_t)AGENT_MIB * KIB_PER_MIB * 1024);
	if (reserve < RESERVE_MIN_MIB * KIB_PER_MIB)
		reserve = RESERVE_MIN_MIB * KIB_PER_MIB;
	if (reserve > RESERVE_MAX_MIB * KIB_PER_MIB)
		reserve = RESERVE_MAX_MIB * KIB_PER_MIB;
	if (all > 2 * reserve)
		apply_number(GUEST_USER_CGROUP "/memory.max", (all - reserve) * 1024);
}

void guest_cgroups(void)
{
	static const char *const groups[] = { GUEST_AGENT_CGROUP, GUEST_USER_CGROUP };
	static const struct {
		const char *path, *value;
	} steps[] = {
		/* one by one: a kernel may lack one of them */
		{ GUEST_CGROUPS "/cgroup.subtree_control", "+memory" },
		{ GUEST_CGROUPS "/cgroup.subtree_control", "+pids" },
		{ GUEST_CGROUPS "/cgroup.subtree_control", "+cpu" },
		{ GUEST_USER_CGROUP "/cgroup.subtree_control", "+memory" }, /* for every command */
		{ GUEST_AGENT_CGROUP "/cpu.weight", "1000" }, /* answers, whatever else runs */
		{ GUEST_AGENT_CGROUP "/cgroup.procs", "0" },  /* ourselves */
	};
	struct err err;

	for (size_t i = 0; i < COUNT(groups); i++)
		if (dir_settle(groups[i], 0755, &err) < 0)
			log_error("%s", err.msg);
	for (size_t i = 0; i < COUNT(steps); i++)
		apply(steps[i].path, steps[i].value);
	limit_pids();
	limit_memory();
}

/* --- network -------------------------------------------------------------------------------- */

/* The same addresses in every sandbox: a snapshot never has to be re-addressed. */

static const char own_address[] = "169.254.77.2";
static const char netmask[] = "255.255.255.252";
static const char gateway[] = "169.254.77.1";

static struct sockaddr ipv4(const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr any;

	static_assert(sizeof(in) == sizeof(any), "as the kernel has it");
	if (inet_pton(AF_INET, text, &in.sin_addr) != 1)
		abort();
	memcpy(&any, &in, sizeof(any));
	return any;
}

static struct ifreq request(const char *name)
{
	struct ifreq rq = { 0 };

	snprintf(rq.ifr_name, sizeof(rq.ifr_name), "%s", name);
	return rq;
}

static int set_address(int sock, const char *name, struct err *err)
{
	struct ifreq rq = request(name);

	rq.ifr_addr = ipv4(own_address);
	if (ioctl(sock, SIOCSIFADDR, &rq) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s: set the address", name);
	rq.ifr_netmask = ipv4(netmask);
	if (ioctl(sock, SIOCSIFNETMASK, &rq) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s: set the netmask", name);
	return 0;
}

static int bring_up(int sock, const char *name, struct err *err)
{
	struct ifreq rq = request(name);

	if (ioctl(sock, SIOCGIFFLAGS, &rq) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s", name);
	rq.ifr_flags |= IFF_UP;
	if (ioctl(sock, SIOCSIFFLAGS, &rq) < 0)
		return err_set(err, ERR_INTERNAL, errno, "%s: bring up", name);
	return 0;
}

static int add_route(int sock, struct err *err)
{
	struct rtentry route = {
		.rt_dst = ipv4("0.0.0.0"),
		.rt_genmask = ipv4("0.0.0.0"),
		.rt_gateway = ipv4(gateway),
		.rt_flags = RTF_UP | RTF_GATEWAY,
	};

	if (ioctl(sock, SIOCADDRT, &route) < 0 && errno != EEXIST)
		return err_set(err, ERR_INTERNAL, errno, "route to %s", gateway);
	return 0;
}

void guest_network(void)
{
	AUTO(auto_close) int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct err err;

	if (sock < 0) {
		log_error("no network: %s", strerror(errno));
		return;
	}
	if (bring_up(sock, "lo", &err) < 0)
		log_error("%s", err.msg);
	if (set_address(sock, "eth0", &err) < 0 || bring_up(sock, "eth0", &err) < 0 ||
	    add_route(sock, &err) < 0)
		log_error("%s", err.msg);
}
