/* metrics.c - GET /metrics. */
#include "agent/machine/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/statvfs.h>

#include "agent/agent.h"
#include "agent/machine/files_small.h"
#include "agent/reply.h"
#include "agent/route.h"
#include "base/clock.h"

enum { STAT_MAX = 1024 * 1024, MEMINFO_MAX = 64 * 1024, JSON_MAX = 1024, CPU_FIELDS = 8 };

/* cpu  user nice system idle iowait irq softirq steal ...; guest time is in user already. */
int metrics_cpu(struct bytes stat, struct cpu_times *ret, struct err *err)
{
	enum { IDLE = 3, IOWAIT = 4 };
	struct bytes line, word;
	struct cpu_times t = { 0 };

	if (!bytes_cut(&stat, '\n', &line) || !bytes_starts(line, BYTES_LIT("cpu ")))
		return err_set(err, ERR_INTERNAL, 0, "/proc/stat is not understood");
	line = bytes_trim(bytes_tail(line, 4));
	for (int i = 0; i < CPU_FIELDS; i++) {
		uint64_t v;

		if (!bytes_next(&line, ' ', &word) || !bytes_to_u64(word, &v))
			return err_set(err, ERR_INTERNAL, 0, "/proc/stat is not understood");
		t.total += v;
		t.busy += i == IDLE || i == IOWAIT ? 0 : v;
	}
	*ret = t;
	return 0;
}

/* `MemTotal:    1234 kB` */
static bool find_kib(struct bytes meminfo, const char *name, uint64_t *ret)
{
	struct bytes line, key, number;

	while (bytes_cut(&meminfo, '\n', &line)) {
		if (!bytes_cut(&line, ':', &key) || !bytes_eq(key, bytes_str(name)))
			continue;
		line = bytes_trim(line);
		if (!bytes_cut(&line, ' ', &number) || !bytes_to_u64(number, ret))
			return false;
		*ret *= 1024;
		return true;
	}
	return false;
}

int metrics_memory(struct bytes meminfo, struct memory_sizes *ret, struct err *err)
{
	uint64_t total, unused, buffers, cached, reclaimable, idle;

	if (!find_kib(meminfo, "MemTotal", &total) || !find_kib(meminfo, "MemFree", &unused) ||
	    !find_kib(meminfo, "Buffers", &buffers) || !find_kib(meminfo, "Cached", &cached) ||
	    !find_kib(meminfo, "SReclaimable", &reclaimable))
		return err_set(err, ERR_INTERNAL, 0, "/proc/meminfo is not understood");
	cached += reclaimable;
	idle = unused + buffers + cached;
	*ret = (struct memory_sizes){ total, idle < total ? total - idle : 0, cached };
	return 0;
}

/* Of all processors together, since the last time somebody asked. */
static double cpu_percent(struct agent *a, const struct cpu_times *now)
{
	struct cpu_times before = a->cpu;

	a->cpu = *now;
	if (now->total <= before.total || now->busy < before.busy)
		return 0;
	return 100.0 * (double)(now->busy - before.busy) / (double)(now->total - before.total);
}

static int measure(struct agent *a, struct buf *json, struct err *err)
{
	AUTO(buf_done) struct buf stat = BUF_MAX(STAT_MAX), meminfo = BUF_MAX(MEMINFO_MAX);
	struct memory_sizes m;
	struct cpu_times cpu;
	struct statvfs disk;

	if (file_read("/proc/stat", &stat, err) < 0 ||
	    metrics_cpu(buf_view(&stat), &cpu, err) < 0 ||
	    file_read("/proc/meminfo", &meminfo, err) < 0 ||
	    metrics_memory(buf_view(&meminfo), &m, err) < 0)
		return -1;
	if (statvfs("/", &disk) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at the disk");
	return buf_printf(json, err,
			  "{\"ts\":%" PRIu64 ",\"cpu_count\":%ld,\"cpu_used_pct\":%.2f"
			  ",\"mem_total\":%" PRIu64 ",\"mem_used\":%" PRIu64
			  ",\"mem_cache\":%" PRIu64 ",\"mem_total_mib\":%" PRIu64
			  ",\"mem_used_mib\":%" PRIu64 ",\"disk_used\":%" PRIu64
			  ",\"disk_total\":%" PRIu64 "}",
			  (uint64_t)(clock_wall_ns() / NSEC_PER_SEC), sysconf(_SC_NPROCESSORS_ONLN),
			  cpu_percent(a, &cpu), m.total, m.used, m.cache, m.total >> 20,
			  m.used >> 20, (uint64_t)(disk.f_blocks - disk.f_bfree) * disk.f_frsize,
			  (uint64_t)disk.f_blocks * disk.f_frsize);
}

static void route_metrics(struct agent *a, struct http_request *rq)
{
	static const struct http1_field fields[] = {
		{ BYTES_LIT("content-type"), BYTES_LIT("application/json") },
		{ BYTES_LIT("cache-control"), BYTES_LIT("no-store") },
	};
	const struct http_response r = { .status = 200, .fields = fields, .n_fields = 2 };
	AUTO(buf_done) struct buf json = BUF_MAX(JSON_MAX);
	struct err err;

	if (measure(a, &json, &err) < 0)
		reply_fail(rq, 500, "%s", err.msg);
	else
		http_answer(rq, &r, buf_view(&json));
}

const struct route metrics_routes[] = {
	{ "/metrics", "GET", GUARD_CLIENT, route_metrics },
	{ 0 },
};
