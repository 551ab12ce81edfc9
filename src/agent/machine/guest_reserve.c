/* guest_reserve.c - two cgroups, and what the user's processes may not take from the agent.
 *
 * All of what they use is counted in `user`, so it ends there: memory at memory.max, below what the
 * machine has, processes at pids.max. What is left is enough for the agent to answer and to be
 * started again. On the disk the file system keeps some blocks for root.
 */
#include <errno.h>

#include "agent/machine/files_small.h"
#include "agent/machine/guest.h"
#include "base/log.h"

enum {
	KIB_PER_MIB = 1024,
	AGENT_MIB = 16,        /* never taken from the agent, however short memory is */
	RESERVE_PART = 16,     /* of the machine's memory is not for the user */
	RESERVE_MIN_MIB = 24,  /* but at least */
	RESERVE_MAX_MIB = 128, /* and at most */
	TEXT_MAX = 64,
	MEMINFO_MAX = 8192,
};

static void apply(const char *path, const char *value)
{
	struct err err;

	if (file_poke(path, bytes_str(value), &err) < 0 && err.code != ERR_NOT_FOUND)
		log_error("%s", err.msg);
}

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
	static const char *const dirs[] = { GUEST_AGENT_CGROUP, GUEST_USER_CGROUP };
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

	for (size_t i = 0; i < COUNT(dirs); i++)
		if (dir_settle(dirs[i], 0755, &err) < 0)
			log_error("%s", err.msg);
	for (size_t i = 0; i < COUNT(steps); i++)
		apply(steps[i].path, steps[i].value);
	limit_pids();
	limit_memory();
}
