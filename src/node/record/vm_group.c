/* vm_group.c - small files of the kernel, in the words of cgroup v2 and of v1. */
/* #syscalls: openat read close */
#include "node/record/vm_group.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/vfs.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/read_all.h"

static const char root[] = "/sys/fs/cgroup";

static int read_at(const char *path, char ret[static VM_GROUP_TEXT_MAX], struct err *err)
{
	if (read_text(AT_FDCWD, path, ret, VM_GROUP_TEXT_MAX) >= 0)
		return 0;
	return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_UNAVAILABLE, errno, "read %s",
		       path);
}

/* A file of the VM's group; `tree` is v1's. */
static int read_of(const struct vm_groups *g, const char *tree, const char *id, const char *file,
		   char ret[static VM_GROUP_TEXT_MAX], struct err *err)
{
	char path[VM_GROUP_PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s%s/%s/%s/%s", root, g->v2 ? "" : "/",
			 g->v2 ? "" : tree, g->parent, id, file);

	if (!g->parent[0] || n < 0 || (size_t)n >= sizeof(path))
		return err_set(err, ERR_NOT_FOUND, 0, "no control group is known");
	return read_at(path, ret, err);
}

bool vm_group_number(const char *text, const char *name, uint64_t *ret)
{
	struct bytes rest = bytes_str(text), line, key;

	while (bytes_cut(&rest, '\n', &line))
		if (bytes_cut(&line, ' ', &key) && bytes_eq(key, bytes_str(name)))
			return bytes_to_u64(line, ret);
	return false;
}

bool vm_group_ticks(const char *stat, uint64_t *ret)
{
	/* the second field is a name that may hold anything: what follows its last bracket counts
	 */
	const char *after = strrchr(stat, ')');
	struct bytes rest = bytes_str(after ? after : ""), field;
	uint64_t user = 0, kernel = 0;

	/* utime and stime are the 14th and the 15th; the bracket ends the 2nd */
	for (int i = 2; i < 14; i++)
		if (!bytes_cut(&rest, ' ', &field))
			return false;
	if (!bytes_cut(&rest, ' ', &field) || !bytes_to_u64(field, &user) ||
	    !bytes_cut(&rest, ' ', &field) || !bytes_to_u64(field, &kernel))
		return false;
	*ret = user + kernel;
	return true;
}

static int cpu_of_process(const struct vm_groups *g, const char *id, uint64_t *ret, struct err *err)
{
	char text[VM_GROUP_TEXT_MAX], path[64];
	struct bytes rest, line;
	uint64_t pid, ticks;

	if (read_of(g, "memory", id, "cgroup.procs", text, err) < 0)
		return -1;
	rest = bytes_str(text);
	if (!bytes_cut(&rest, '\n', &line) || !bytes_to_u64(line, &pid))
		return err_set(err, ERR_NOT_FOUND, 0, "nothing runs in the control group of %s",
			       id);
	snprintf(path, sizeof(path), "/proc/%lu/stat", pid);
	if (read_at(path, text, err) < 0)
		return -1;
	if (!vm_group_ticks(text, &ticks))
		return err_set(err, ERR_INTERNAL, 0, "%s makes no sense", path);
	*ret = ticks * (NSEC_PER_SEC / (uint64_t)g->ticks_per_s);
	return 0;
}

static int cpu_time(const struct vm_groups *g, const char *id, uint64_t *ret, struct err *err)
{
	char text[VM_GROUP_TEXT_MAX];
	uint64_t us = 0;

	if (g->cpu_of_process)
		return cpu_of_process(g, id, ret, err);
	if (read_of(g, "cpu", id, g->v2 ? "cpu.stat" : "cpuacct.usage", text, err) < 0)
		return -1;
	if (g->v2 ? vm_group_number(text, "usage_usec", &us)
		  : bytes_to_u64(bytes_head(bytes_str(text), strcspn(text, "\n")), ret)) {
		if (g->v2)
			*ret = us * 1000;
		return 0;
	}
	return err_set(err, ERR_INTERNAL, 0, "processor time of %s makes no sense", id);
}

int vm_group_measure(const struct vm_groups *g, const char *id, struct vm_usage *ret,
		     struct err *err)
{
	char text[VM_GROUP_TEXT_MAX];

	if (cpu_time(g, id, &ret->cpu_ns, err) < 0 ||
	    read_of(g, "memory", id, "memory.stat", text, err) < 0)
		return -1;
	/* the template's memory, which all share, is another group's */
	if (!vm_group_number(text, g->v2 ? "anon" : "rss", &ret->memory_bytes) ||
	    !vm_group_number(text, g->v2 ? "file" : "cache", &ret->cache_bytes))
		return err_set(err, ERR_INTERNAL, 0, "memory of %s makes no sense", id);
	return 0;
}

uint64_t vm_group_memory_mib(const struct vm_groups *g, const char *id)
{
	struct vm_usage now;
	struct err ignored;

	if (vm_group_measure(g, id, &now, &ignored) < 0)
		return 0;
	return now.memory_bytes / (1024 * 1024);
}

bool vm_group_out_of_memory(const struct vm_groups *g, const char *id)
{
	char text[VM_GROUP_TEXT_MAX];
	uint64_t kills = 0;
	struct err err;

	if (read_of(g, "memory", id, g->v2 ? "memory.events" : "memory.oom_control", text, &err) <
	    0)
		return false;
	return vm_group_number(text, "oom_kill", &kills) && kills > 0;
}

void vm_groups_open(struct vm_groups *g, const char *parent)
{
	char path[VM_GROUP_PATH_MAX];
	struct statfs fs;

	*g = (struct vm_groups){ .ticks_per_s = sysconf(_SC_CLK_TCK) };
	if (statfs(root, &fs) < 0)
		return;
	g->v2 = fs.f_type == CGROUP2_SUPER_MAGIC;
	snprintf(g->parent, sizeof(g->parent), "%s", parent);
	snprintf(path, sizeof(path), "%s/cpu/cpuacct.usage", root);
	g->cpu_of_process = !g->v2 && access(path, R_OK) < 0;
}

size_t vm_groups_folders(const struct vm_groups *g, struct confine_path *ret)
{
	size_t n = 0;

	if (!g->parent[0])
		return 0;
	ret[n++] = (struct confine_path){ root, CONFINE_READ };
	if (g->cpu_of_process)
		ret[n++] = (struct confine_path){ "/proc", CONFINE_READ };
	return n;
}
