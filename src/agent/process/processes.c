/* processes.c - a list: entries come and go by themselves. */
#include "agent/process/processes.h"

#include "base/list.h"
#include "wire/json.h"

void processes_init(struct processes *t, struct loop *l)
{
	*t = (struct processes){ .loop = l };
}

static void forget(struct process *p)
{
	list_remove(p);
	p->table->config_bytes -= strlen(p->config);
	p->table->n--;
	process_free(p);
}

/* A client may ask for it a moment too late. */
static void remember(struct processes *t, struct process *p)
{
	struct past *slot = &t->past[t->past_next];

	free(slot->tag);
	*slot = (struct past){ p->pid, TAKE(p->tag), p->end, loop_now_ms(t->loop) };
	t->past_next = (t->past_next + 1) % PAST_MAX;
	t->past_n += t->past_n < PAST_MAX;
}

static void on_over(struct process *p)
{
	if (p->state != PROCESS_FAILED)
		remember(p->table, p);
	forget(p);
}

static void insert(struct processes *t, struct process *p)
{
	p->table = t;
	p->serial = ++t->serial;
	list_add(&t->first, p);
	t->config_bytes += strlen(p->config);
	t->n++;
}

int processes_start(struct processes *t, const struct process_spec *spec, struct process **ret,
		    struct err *err)
{
	if (t->n >= PROCESSES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%d processes are running already",
			       PROCESSES_MAX);
	if (spec->config.len > PROCESSES_CONFIG_MAX - t->config_bytes)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "the processes that run fill %d bytes already",
			       PROCESSES_CONFIG_MAX);
	if (process_start(t->loop, spec, on_over, ret, err) < 0)
		return -1;
	insert(t, *ret);
	return 0;
}

void processes_done(struct processes *t)
{
	while (t->first)
		forget(t->first);
	for (size_t i = 0; i < COUNT(t->past); i++)
		free(t->past[i].tag);
}

static bool fits(const struct process_selector *which, pid_t pid, const char *tag)
{
	if (!which->by_tag)
		return which->pid == (uint32_t)pid;
	return tag && bytes_eq(which->tag, bytes_str(tag));
}

int processes_find(struct processes *t, const struct process_selector *which, struct process **ret,
		   struct err *err)
{
	for (struct process *p = t->first; p; p = p->next) {
		if (p->state == PROCESS_FAILED || !fits(which, p->pid, p->tag))
			continue;
		*ret = p;
		return 0;
	}
	if (which->by_tag)
		return err_set(err, ERR_NOT_FOUND, 0, "process with tag %.*s not found",
			       (int)which->tag.len, (const char *)which->tag.ptr);
	return err_set(err, ERR_NOT_FOUND, 0, "process with pid %u not found", which->pid);
}

struct process *processes_by_serial(struct processes *t, uint64_t serial)
{
	for (struct process *p = t->first; p; p = p->next)
		if (p->serial == serial)
			return p;
	return NULL;
}

const struct past *processes_past(struct processes *t, const struct process_selector *which)
{
	uint64_t now = loop_now_ms(t->loop);

	for (size_t i = 1; i <= t->past_n; i++) {
		const struct past *e = &t->past[(t->past_next + PAST_MAX - i) % PAST_MAX];

		if (now - e->at_ms > PAST_MS)
			return NULL; /* and those before it */
		if (fits(which, e->pid, e->tag))
			return e;
	}
	return NULL;
}

void processes_still(struct processes *t, bool on)
{
	t->still = on;
	for (struct process *p = t->first; p; p = p->next)
		process_update(p);
}

void processes_await(struct processes *t)
{
	for (struct process *p = t->first; p; p = p->next)
		process_await(p);
}

static int put_one(const struct process *p, struct buf *out, struct err *err)
{
	AUTO(json_decrefp) json_t *tag = NULL;

	if (buf_printf(out, err, "{\"config\":%s,\"pid\":%d", p->config, p->pid) < 0)
		return -1;
	if (p->tag) {
		tag = json_text(bytes_str(p->tag));
		if (buf_add(out, BYTES_LIT(",\"tag\":"), err) < 0 || json_encode(tag, out, err) < 0)
			return -1;
	}
	return buf_add(out, BYTES_LIT("}"), err);
}

int processes_put_list(const struct processes *t, struct buf *out, struct err *err)
{
	const char *sep = "";

	if (buf_add(out, BYTES_LIT("{\"processes\":["), err) < 0)
		return -1;
	for (const struct process *p = t->first; p; p = p->next) {
		if (p->state != PROCESS_RUNNING && p->state != PROCESS_EXITED)
			continue;
		if (buf_add(out, bytes_str(sep), err) < 0 || put_one(p, out, err) < 0)
			return -1;
		sep = ",";
	}
	return buf_add(out, BYTES_LIT("]}"), err);
}
