/* machine.c - memory, processors, limits of the system, time: one function each. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <time.h>

#include "base/read_all.h"
#include "cli/doctor.h"

enum {
	DESCRIPTORS = 65536, /* 10,000 streams need two each, and VMs a few more */
	DESCRIPTORS_LEAST = 4096,
	MEMORY_MIB = 2048,
	MEMORY_MIB_LEAST = 512, /* one sandbox, as node's default is, and nothing else */
	TASKS = 32768,          /* a VM has some ten threads */
	MAPS = 65530,           /* the kernel's own default */
	NETWORKS = 1100,        /* one for each VM of vms_max, and for slots that are ready */
	TEXT_MAX = 4096,
	CLOCK_SLACK_S = 24 * 3600,
};

/* --- control groups ------------------------------------------------------------------------- */

/* Is `word` one of the words of `text`? */
static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = text; (p = strstr(p, word)); p += n)
		if ((p == text || p[-1] == ' ') && (!p[n] || p[n] == ' ' || p[n] == '\n'))
			return true;
	return false;
}

static void look_cgroups(const struct told *t, struct finding *f)
{
	static const char *const need[] = { "memory", "cpu", "pids" };
	static const char fix[] = "boot with the controllers memory, cpu and pids (without "
				  "cgroup_disable=memory); best is cgroup v2 alone, as systemd "
				  "does it; in a container let it have a group that is delegated";
	char controllers[512], path[64];
	bool v2 = read_text(AT_FDCWD, "/sys/fs/cgroup/cgroup.controllers", controllers,
			    sizeof(controllers)) >= 0;

	(void)t;
	for (size_t i = 0; i < COUNT(need); i++) {
		snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", need[i]);
		if (v2 ? has_word(controllers, need[i]) : access(path, F_OK) == 0)
			continue;
		finding_add(f, VERDICT_FAIL, fix, "no controller %s (%s)", need[i],
			    v2 ? "v2" : "v1");
	}
	if (f->verdict != VERDICT_OK)
		return;
	if (access("/sys/fs/cgroup", W_OK) < 0 && errno == EROFS)
		finding_set(f, VERDICT_FAIL, fix, "/sys/fs/cgroup is read-only");
	else
		finding_set(f, VERDICT_OK, NULL, "%s with memory, cpu, pids", v2 ? "v2" : "v1");
}

/* --- memory --------------------------------------------------------------------------------- */

/* A line of /proc/meminfo, in MiB. */
static unsigned long meminfo_mib(const char *name)
{
	char text[TEXT_MAX];
	const char *line;

	if (read_text(AT_FDCWD, "/proc/meminfo", text, sizeof(text)) < 0)
		return 0;
	line = strstr(text, name);
	return line ? strtoul(line + strlen(name), NULL, 10) >> 10 : 0;
}

static void look_memory(const struct told *t, struct finding *f)
{
	unsigned long mib = meminfo_mib("MemAvailable:"), all = meminfo_mib("MemTotal:");
	enum verdict v = mib >= MEMORY_MIB         ? VERDICT_OK
			 : mib >= MEMORY_MIB_LEAST ? VERDICT_WARN
						   : VERDICT_FAIL;

	(void)t;
	finding_set(f, v,
		    "give the host more memory, or end what takes it: a sandbox needs about 20 MiB "
		    "when idle and all of its memory when busy",
		    "%lu MiB available, of %lu", mib, all);
}

static void look_swap(const struct told *t, struct finding *f)
{
	unsigned long mib = meminfo_mib("SwapTotal:");

	(void)t;
	if (mib == 0)
		finding_set(f, VERDICT_OK, NULL, "none");
	else
		finding_set(f, VERDICT_WARN,
			    "swapoff -a and remove it from /etc/fstab, or encrypt it: what is in "
			    "the memory of a sandbox comes to lie there, and sandboxes get slow",
			    "%lu MiB", mib);
}

/* -1: there is no such file, or no number in it. */
static long long number_in(const char *path)
{
	char text[64], *end;
	long long n;

	if (read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -1;
	n = strtoll(text, &end, 10);
	return end == text ? -1 : n;
}

/* Equal pages of different sandboxes made one: who times a write knows what others have. */
static void look_ksm(const struct told *t, struct finding *f)
{
	(void)t;
	if (number_in("/sys/kernel/mm/ksm/run") == 1)
		finding_set(f, VERDICT_WARN,
			    "echo 2 >/sys/kernel/mm/ksm/run, and disable ksmtuned or ksm.service",
			    "the kernel merges equal pages of different sandboxes: one can find "
			    "out what another has in memory");
	else
		finding_set(f, VERDICT_OK, NULL, "off");
}

static void look_overcommit(const struct told *t, struct finding *f)
{
	(void)t;
	if (number_in("/proc/sys/vm/overcommit_memory") == 2)
		finding_set(f, VERDICT_FAIL, "sysctl -w vm.overcommit_memory=0",
			    "vm.overcommit_memory is 2: memory of templates that is shared counts "
			    "once for each sandbox");
	else
		finding_set(f, VERDICT_OK, NULL, "vm.overcommit_memory is not 2");
}

/* --- processors ----------------------------------------------------------------------------- */

static void look_smt(const struct told *t, struct finding *f)
{
	(void)t;
	if (number_in("/sys/devices/system/cpu/smt/active") == 1)
		finding_set(f, VERDICT_WARN,
			    "boot with nosmt (or mitigations=auto,nosmt) where teams do not trust "
			    "each other",
			    "two threads share a core: a sandbox can measure what its neighbour "
			    "does");
	else
		finding_set(f, VERDICT_OK, NULL, "no two threads share a core");
}

static void look_mitigations(const struct told *t, struct finding *f)
{
	static const char *const names[] = {
		"meltdown",
		"spectre_v1",
		"spectre_v2",
		"l1tf",
		"mds",
		"tsx_async_abort",
		"mmio_stale_data",
		"retbleed",
		"gather_data_sampling",
		"srbds",
		"spec_rstack_overflow",
		"reg_file_data_sampling",
	};
	char path[128], text[256], bad[512] = "";
	size_t len = 0;

	(void)t;
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "/sys/devices/system/cpu/vulnerabilities/%s",
			 names[i]);
		if (read_text(AT_FDCWD, path, text, sizeof(text)) < 0 ||
		    strncmp(text, "Vulnerable", strlen("Vulnerable")) != 0 || len >= sizeof(bad))
			continue;
		len += (size_t)snprintf(bad + len, sizeof(bad) - len, "%s%s", len ? ", " : "",
					names[i]);
	}
	if (bad[0])
		finding_set(f, VERDICT_WARN,
			    "boot without mitigations=off, and install the processor's microcode "
			    "(intel-microcode or amd64-microcode)",
			    "nothing is done against %s", bad);
	else
		finding_set(f, VERDICT_OK, NULL, "the kernel knows of nothing that is open");
}

/* --- limits --------------------------------------------------------------------------------- */

static void look_descriptors(const struct told *t, struct finding *f)
{
	static const char fix[] = "raise the hard limit: LimitNOFILE=1048576 in the units, "
				  "or ulimit -Hn; and sysctl fs.nr_open, fs.file-max";
	struct rlimit limit = { 0 };
	unsigned long long most;

	(void)t;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		limit.rlim_max = 0;
	most = (unsigned long long)limit.rlim_max;
	if (most >= DESCRIPTORS)
		finding_set(f, VERDICT_OK, NULL, "%llu per process", most);
	else
		finding_set(f, most >= DESCRIPTORS_LEAST ? VERDICT_WARN : VERDICT_FAIL, fix,
			    "%llu per process; 65536 or more are wanted", most);
}

/* Numbers of the kernel that end the growth of a host, one row each. */
static void look_limits(const struct told *t, struct finding *f)
{
	static const struct {
		const char *path, *name, *fix;
		long long least;
	} rows[] = {
		{ "/proc/sys/kernel/pid_max", "kernel.pid_max", "sysctl -w kernel.pid_max=4194304",
		  TASKS },
		{ "/proc/sys/kernel/threads-max", "kernel.threads-max",
		  "sysctl -w kernel.threads-max=131072", TASKS },
		{ "/proc/sys/vm/max_map_count", "vm.max_map_count",
		  "sysctl -w vm.max_map_count=262144", MAPS },
		{ "/proc/sys/fs/file-max", "fs.file-max", "sysctl -w fs.file-max=1048576",
		  DESCRIPTORS },
		{ "/proc/sys/user/max_net_namespaces", "user.max_net_namespaces",
		  "sysctl -w user.max_net_namespaces=4096", NETWORKS },
		{ "/proc/sys/user/max_mnt_namespaces", "user.max_mnt_namespaces",
		  "sysctl -w user.max_mnt_namespaces=4096", NETWORKS },
		{ "/proc/sys/user/max_pid_namespaces", "user.max_pid_namespaces",
		  "sysctl -w user.max_pid_namespaces=4096", NETWORKS },
	};

	(void)t;
	for (size_t i = 0; i < COUNT(rows); i++) {
		long long n = number_in(rows[i].path);

		if (n >= 0 && n < rows[i].least)
			finding_add(f, n == 0 ? VERDICT_FAIL : VERDICT_WARN, rows[i].fix,
				    "%s is %lld; %lld or more are wanted", rows[i].name, n,
				    rows[i].least);
	}
	if (f->verdict == VERDICT_OK)
		finding_set(f, VERDICT_OK, NULL,
			    "processes, maps, files and namespaces are enough");
}

/* --- time ----------------------------------------------------------------------------------- */

/* Certificates, signed URLs and deadlines go by it. */
static void look_clock(const struct told *t, struct finding *f)
{
	static const char fix[] = "timedatectl set-ntp true (package systemd-timesyncd), or "
				  "another NTP client; see timedatectl status";
	struct timex x = { 0 };
	struct stat st;
	time_t now = time(NULL);
	struct tm tm;
	char text[32];

	(void)t;
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC",
		 gmtime_r(&now, &tm) ?: &(struct tm){ 0 });
	if (stat("/proc/self/exe", &st) == 0 && st.st_mtime > now + CLOCK_SLACK_S)
		finding_set(f, VERDICT_FAIL, fix,
			    "it is %s, says the clock: before this program was installed", text);
	else if (adjtimex(&x) < 0 || (x.status & STA_UNSYNC))
		finding_set(f, VERDICT_WARN, fix,
			    "it is %s, says the clock, which nobody keeps right: certificates and "
			    "signed URLs go by it",
			    text);
	else
		finding_set(f, VERDICT_OK, NULL, "%s, kept right", text);
}

static const struct check checks[] = {
	{ "cgroups", look_cgroups, CHECK_ALWAYS },
	{ "memory", look_memory, CHECK_ALWAYS },
	{ "swap", look_swap, CHECK_ALWAYS },
	{ "ksm", look_ksm, CHECK_ALWAYS },
	{ "overcommit", look_overcommit, CHECK_ALWAYS },
	{ "smt", look_smt, CHECK_ALWAYS },
	{ "mitigations", look_mitigations, CHECK_ALWAYS },
	{ "descriptors", look_descriptors, CHECK_ALWAYS },
	{ "limits", look_limits, CHECK_ALWAYS },
	{ "clock", look_clock, CHECK_ALWAYS },
};
const struct checks machine_checks = { checks, COUNT(checks) };
