/* cgroup.c - the same limits in the words of cgroup v2 and of v1. */
/* #parses: decimal numbers in cgroup.procs; from the kernel */
#include "jail/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/bytes.h"
#include "base/folder.h"

enum {
	CPU_PERIOD_US = 100000,
	REMOVE_TRIES = 200,
	REMOVE_WAIT_MS = 10,
	MEMBERS_TEXT = 4096,
	INNER_AMONG = 64
};

static const char root[] = "/sys/fs/cgroup";
static const char *const v1_trees[CGROUP_TREES] = { "memory", "cpu", "pids" };

static bool is_v2(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

static int open_parent(const char *tree, const char *parent, struct err *err)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s%s/%s", root, tree[0] ? "/" : "", tree, parent);
	return folder_ensure(path, 0755, err);
}

static int open_v2(struct cgroups *g, const char *parent, struct err *err)
{
	AUTO(auto_close) int top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (top < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "open %s", root);
	if (folder_write(top, "cgroup.subtree_control", "+memory +cpu +pids", err) < 0)
		return err_wrap(err, "enable the memory, cpu and pids controllers");
	g->v2 = true;
	g->n = 1;
	g->parent[0] = open_parent("", parent, err);
	if (g->parent[0] < 0)
		return -1;
	return folder_write(g->parent[0], "cgroup.subtree_control", "+memory +cpu +pids", err);
}

static int open_v1(struct cgroups *g, const char *parent, struct err *err)
{
	g->v2 = false;
	g->n = CGROUP_TREES;
	for (size_t i = 0; i < CGROUP_TREES; i++) {
		g->parent[i] = open_parent(v1_trees[i], parent, err);
		if (g->parent[i] < 0 || faccessat(g->parent[i], "cgroup.procs", F_OK, 0) < 0)
			return err_set(err, ERR_UNAVAILABLE, errno, "no cgroup v1 %s", v1_trees[i]);
	}
	return 0;
}

int cgroups_open(struct cgroups *ret, const char *parent, struct err *err)
{
	if ((is_v2(root) ? open_v2(ret, parent, err) : open_v1(ret, parent, err)) < 0)
		return -1;
	for (size_t i = 0; i < ret->n; i++)
		if (mkdirat(ret->parent[i], CGROUP_CACHE, 0755) < 0 && errno != EEXIST)
			return err_set(err, ERR_INTERNAL, errno, "make the cache's cgroup");
	return 0;
}

PRINTF(4, 5)
static int set(int group, const char *file, struct err *err, const char *fmt, ...)
{
	char text[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return folder_write(group, file, text, err);
}

static int limit_v2(int group, const struct cgroup_limits *l, struct err *err)
{
	if (set(group, "memory.max", err, "%lu", l->memory_bytes) < 0 ||
	    set(group, "memory.oom.group", err, "1") < 0 ||
	    set(group, "pids.max", err, "%u", l->pids) < 0)
		return -1;
	if (l->cpu_percent == 0)
		return 0;
	return set(group, "cpu.max", err, "%lu %d", (uint64_t)l->cpu_percent * CPU_PERIOD_US / 100,
		   CPU_PERIOD_US);
}

static int limit_v1(size_t tree, int group, const struct cgroup_limits *l, struct err *err)
{
	switch (tree) {
	case 0:
		return set(group, "memory.limit_in_bytes", err, "%lu", l->memory_bytes);
	case 1:
		if (l->cpu_percent == 0)
			return 0;
		if (set(group, "cpu.cfs_period_us", err, "%d", CPU_PERIOD_US) < 0)
			return -1;
		return set(group, "cpu.cfs_quota_us", err, "%lu",
			   (uint64_t)l->cpu_percent * CPU_PERIOD_US / 100);
	default:
		return set(group, "pids.max", err, "%u", l->pids);
	}
}

int cgroup_make(const struct cgroups *g, const char *name, const struct cgroup_limits *l,
		struct err *err)
{
	for (size_t i = 0; i < g->n; i++) {
		AUTO(auto_close) int group = folder_make(g->parent[i], name, 0755, err);

		if (group < 0 || (g->v2 ? limit_v2(group, l, err) : limit_v1(i, group, l, err)) < 0)
			return err_wrap(err, "make cgroup %s", name);
	}
	return 0;
}

int cgroup_join(const struct cgroups *g, const char *name, pid_t pid, struct err *err)
{
	char path[256], text[32];

	snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	snprintf(text, sizeof(text), "%d", pid);
	for (size_t i = 0; i < g->n; i++)
		if (folder_write(g->parent[i], path, text, err) < 0)
			return err_wrap(err, "join cgroup %s", name);
	return 0;
}

int cgroup_members(const struct cgroups *g, const char *name, pid_t *ret, size_t max,
		   struct err *err)
{
	AUTO(auto_close) int fd = -1;
	char path[256], text[MEMBERS_TEXT];
	struct bytes rest, line;
	ssize_t got;
	int n = 0;

	snprintf(path, sizeof(path), "%s/cgroup.procs", name);
	fd = folder_open(g->parent[0], path, O_RDONLY, 0, err);
	if (fd < 0)
		return err->code == ERR_NOT_FOUND ? 0 : -1;
	got = read(fd, text, sizeof(text));
	if (got < 0)
		return err_set(err, ERR_INTERNAL, errno, "read %s", path);
	rest = (struct bytes){ (const uint8_t *)text, (size_t)got };
	while (bytes_cut(&rest, '\n', &line)) {
		uint64_t pid;

		if (bytes_to_u64(line, &pid) && (size_t)n < max)
			ret[n] = (pid_t)pid;
		n++;
	}
	return n;
}

static ino_t pid_namespace(pid_t pid)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

int cgroup_inner(const struct cgroups *g, const char *name, pid_t *ret, struct err *err)
{
	pid_t all[INNER_AMONG];
	int n = cgroup_members(g, name, all, INNER_AMONG, err), found = 0;

	if (n < 0)
		return -1;
	for (int i = 0; i < n && i < INNER_AMONG; i++) {
		ino_t its = pid_namespace(all[i]);

		if (its == 0 || its == pid_namespace(getpid()))
			continue;
		*ret = all[i];
		found++;
	}
	return found == 1;
}

struct stranger {
	const struct cgroups *groups;
	int folders;
	char *name;
	pid_t pid; /* 0: none yet */
};

static int look_for_stranger(int parent, const char *name, void *context, struct err *err)
{
	struct stranger *s = context;
	struct stat st;
	pid_t pid;
	int n;

	if (s->pid || !folder_name_ok(name, CGROUP_NAME_SIZE) ||
	    fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISDIR(st.st_mode) ||
	    fstatat(s->folders, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	n = cgroup_members(s->groups, name, &pid, 1, err);
	if (n > 0) {
		s->pid = pid;
		snprintf(s->name, CGROUP_NAME_SIZE, "%s", name);
	}
	return n < 0 ? -1 : 0;
}

int cgroup_strange(const struct cgroups *g, int folders, char ret_name[static CGROUP_NAME_SIZE],
		   pid_t *ret, struct err *err)
{
	struct stranger s = { g, folders, ret_name, 0 };

	if (folder_each(g->parent[0], look_for_stranger, &s, err) < 0)
		return -1;
	*ret = s.pid;
	return s.pid != 0;
}

static int remove_one(int parent, const char *name, struct err *err)
{
	for (int i = 0; i < REMOVE_TRIES; i++) {
		if (unlinkat(parent, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			break;
		poll(NULL, 0, REMOVE_WAIT_MS); /* dying processes leave the group in their time */
	}
	return err_set(err, ERR_INTERNAL, errno, "remove cgroup %s", name);
}

int cgroup_remove(const struct cgroups *g, const char *name, struct err *err)
{
	/* made first, removed last: as long as the first is there, the others may be */
	for (size_t i = g->n; i > 0; i--)
		if (remove_one(g->parent[i - 1], name, err) < 0)
			return -1;
	return 0;
}
