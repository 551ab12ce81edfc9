/* metrics.c - a few sandboxes in each turn of the loop, so that a thousand hold nobody up. */
/* #syscalls: newfstatat */
#include "node/record/metrics.h"

#include <inttypes.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/life/sandbox_row.h"
#include "node/node.h"
#include "node/life/requests.h"
#include "wire/rfc3339.h"

static const uint64_t kib = 1024, mib = 1024 * 1024;

/* --- samples ------------------------------------------------------------------------------ */

static uint32_t to_kib(uint64_t bytes, uint64_t max_mib)
{
	uint64_t most = max_mib * 1024;

	return (uint32_t)(bytes / kib < most ? bytes / kib : most);
}

bool metrics_point(const struct vm_usage *before, const struct vm_usage *now, uint64_t ns,
		   const struct node_sandbox *info, struct history_point *ret)
{
	uint64_t vcpus = info->vcpus ? info->vcpus : 1, cpu;

	if (now->cpu_ns < before->cpu_ns || ns == 0)
		return false;
	cpu = (now->cpu_ns - before->cpu_ns) * 10000 / ns / vcpus;
	ret->cpu_percent = (uint32_t)(cpu < 10000 ? cpu : 10000); /* QEMU's own work is extra */
	ret->memory_kib = to_kib(now->memory_bytes, info->memory_mib);
	ret->cache_kib = to_kib(now->cache_bytes, info->memory_mib);
	return true;
}

static uint32_t disk_kib(const struct sandbox *s)
{
	char path[CONFIG_VALUE_MAX + NODE_ID_MAX + 32];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sandboxes/%s/disk", s->node->set[SET_DATA_DIR].text,
		 s->info.id);
	if (stat(path, &st) < 0)
		return 0;
	return to_kib((uint64_t)st.st_blocks * 512, s->info.disk_mib);
}

static void sample(struct sandbox *s, uint64_t now_ms)
{
	struct metrics *m = &s->record.metrics;
	struct history_point p = { .time_s = (uint32_t)(clock_wall_ns() / NSEC_PER_SEC) };
	uint64_t ns = clock_mono_ns();
	struct vm_usage now = { 0 };
	struct err err;

	m->due_ms = now_ms + (m->last_ns ? HISTORY_FINE_S * 1000 : METRICS_FIRST_MS);
	if (vm_group_measure(&s->node->groups, s->info.id, &now, &err) < 0) {
		log_debug("%s: %s", s->info.id, err.msg);
		m->last_ns = 0;
		return;
	}
	if (m->last_ns && metrics_point(&m->last, &now, ns - m->last_ns, &s->info, &p)) {
		p.disk_kib = disk_kib(s);
		history_add(&m->history, &p);
	}
	m->last = now;
	m->last_ns = ns;
}

static void on_turn(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, metrics_turn);
	uint64_t now = loop_now_ms(n->loop);
	unsigned int left = METRICS_TURN_MAX;

	for (struct sandbox *s = n->table.all; s && left > 0; s = s->next) {
		if (s->state != SANDBOX_RUNNING) {
			s->record.metrics.last_ns = 0; /* what it uses next is another VM's */
		} else if (now >= s->record.metrics.due_ms) {
			sample(s, now);
			left--;
		}
	}
}

void metrics_open(struct node *n)
{
	timer_init(&n->metrics_turn, n->loop, on_turn);
	timer_repeat(&n->metrics_turn, METRICS_TURN_MS);
}

void metrics_close(struct node *n)
{
	timer_stop(&n->metrics_turn);
}

void metrics_done(struct metrics *m)
{
	history_done(&m->history);
}

/* --- answers ------------------------------------------------------------------------------ */

int metrics_put(const struct history_point *p, const struct node_sandbox *info, struct buf *out,
		struct err *err)
{
	char time[RFC3339_SIZE];

	rfc3339_put(p->time_s * NSEC_PER_SEC, 0, time);
	return buf_printf(out, err,
			  "{\"timestamp\":\"%s\",\"timestampUnix\":%u,\"cpuCount\":%u,"
			  "\"cpuUsedPct\":%u.%02u,\"memUsed\":%" PRIu64 ",\"memTotal\":%" PRIu64
			  ",\"memCache\":%" PRIu64 ",\"diskUsed\":%" PRIu64
			  ",\"diskTotal\":%" PRIu64 "}",
			  time, p->time_s, info->vcpus, p->cpu_percent / 100, p->cpu_percent % 100,
			  p->memory_kib * kib, info->memory_mib * mib, p->cache_kib * kib,
			  p->disk_kib * kib, info->disk_mib * mib);
}

int metrics_put_latest(const struct sandbox *s, struct buf *out, struct err *err)
{
	uint64_t now_s = clock_wall_ns() / NSEC_PER_SEC;
	struct history_point p;

	if (!history_latest(&s->record.metrics.history, &p))
		return 0;
	if (s->state != SANDBOX_RUNNING)
		p.cpu_percent = p.memory_kib = p.cache_kib = 0;
	else if (p.time_s + METRICS_LATEST_S < now_s)
		return 0;
	return metrics_put(&p, &s->info, out, err);
}

static int put_all(const struct sandbox *s, const struct node_request *rq, struct buf *out,
		   struct err *err)
{
	uint64_t after = (rq->after_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC;
	uint64_t until = rq->until_ns ? rq->until_ns / NSEC_PER_SEC : UINT32_MAX;
	struct history_point p[METRICS_POINTS_MAX];
	size_t n = 0;

	if (after <= UINT32_MAX)
		n = history_get(&s->record.metrics.history, (uint32_t)after,
				(uint32_t)(until < UINT32_MAX ? until : UINT32_MAX), p, COUNT(p));
	if (buf_printf(out, err, "[") < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if ((i > 0 && buf_printf(out, err, ",") < 0) ||
		    metrics_put(&p[i], &s->info, out, err) < 0)
			return -1;
	return buf_printf(out, err, "]");
}

void metrics_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		 struct bytes text)
{
	AUTO(buf_done) struct buf out = BUF_MAX(METRICS_POINTS_MAX * METRICS_POINT_TEXT);
	struct err err;
	const struct sandbox *s = requests_find(n, rq, &err);

	static_assert(METRICS_POINTS_MAX * METRICS_POINT_TEXT + sizeof(struct node_reply) <=
			      NODE_MESSAGE_MAX,
		      "an answer is one datagram");
	(void)text;
	if (!s)
		ended_refuse(n, a, rq, &err);
	else if (put_all(s, rq, &out, &err) < 0)
		door_refuse(a, &err);
	else
		door_answer(a, &(struct node_reply){ .sandbox = sandbox_told(s) }, buf_view(&out),
			    NULL, 0);
}
