/* figures.c - counted as it happens, told as text. */
/* #syscalls: fstatfs statfs pread64 */
#include "node/record/figures.h"

#include <errno.h>
#include <stdio.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/list.h"
#include "node/life/admission.h"
#include "node/life/ready.h"
#include "node/links/egress_client.h"
#include "node/node.h"
#include "wire/exposition.h"

enum { MIB = 1024 * 1024 };

enum {
#define FIGURE(id, name, kind, labels, help) FIGURE_##id,
#include "node/figures.def"
	FIGURES,
};

static const struct figure table[FIGURES] = {
#define FIGURE(id, name, kind, labels, help) { name, EXPOSITION_##kind, labels, help },
#include "node/figures.def"
};

/* What an operator tells apart, and of which states it is made. */
static const struct {
	const char *name;
	uint32_t states;
} told_states[] = {
#define IN(s) (1u << (s))
	{ "starting", IN(SANDBOX_NOTED) | IN(SANDBOX_SLOT) | IN(SANDBOX_STARTING) |
			      IN(SANDBOX_RESTORING) | IN(SANDBOX_NAMING) | IN(SANDBOX_SETTLING) },
	{ "pooled", IN(SANDBOX_WAITING) },
	{ "running", IN(SANDBOX_RUNNING) },
	{ "pausing", IN(SANDBOX_PAUSING) },
	{ "paused", IN(SANDBOX_PARKING) | IN(SANDBOX_PAUSED) },
	{ "waking", IN(SANDBOX_WAKING) },
	{ "ending", IN(SANDBOX_ENDING) },
#undef IN
};

struct figures_ask { /* one who waits for what egress says */
	struct node *node;
	struct door_asked *asked;
	struct link_call call;
	struct figures_ask *next, **prev;
};

/* --- what is counted ---------------------------------------------------------------------- */

void figures_took(struct latency *l, uint64_t since_ns)
{
	latency_add(l, (clock_mono_ns() - since_ns) / 1000);
}

static enum figures_path path_of(const struct create *c, const struct sandbox *s)
{
	if (c->fork)
		return PATH_FORK;
	if (s->boots)
		return PATH_BOOT;
	if (s->for_pool)
		return PATH_POOL;
	return s->snapshot ? PATH_SNAPSHOT : PATH_TEMPLATE;
}

void figures_created(struct node *n, const struct create *c, const struct sandbox *s)
{
	if (!c->builder)
		latency_add(&n->figures.create[path_of(c, s)],
			    (loop_now_ms(n->loop) - c->since_ms) * 1000);
}

void figures_refused(struct node *n, const struct create *c, const struct err *why)
{
	if (c->builder)
		return;
	if (c->limited)
		n->figures.limited++;
	else
		n->figures.refused[why->code < ERR_CODES ? why->code : ERR_INTERNAL]++;
}

/* --- as text ------------------------------------------------------------------------------ */

static void put_creates(struct exposition *e, const struct node *n)
{
	static const char *const paths[] = { "pool", "template", "snapshot", "fork", "boot" };
	const struct figures *f = &n->figures;

	exposition_family(e, &table[FIGURE_CREATE]);
	for (size_t i = 0; i < PATHS; i++)
		exposition_latency(e, LABELS({ "path", paths[i] }), &f->create[i]);
	exposition_family(e, &table[FIGURE_CREATES_REFUSED]);
	exposition_value(e, LABELS({ "reason", "limit" }), f->limited);
	for (size_t i = ERR_NONE + 1; i < ERR_CODES; i++)
		exposition_value(e, LABELS({ "reason", err_name((enum err_code)i) }),
				 f->refused[i]);
	exposition_single(e, &table[FIGURE_CREATES_WAITING], n->creates.n);
}

static uint64_t sum_of(const size_t in_state[static SANDBOX_STATES], uint32_t states)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < SANDBOX_STATES; i++)
		if (states & 1u << i)
			n += in_state[i];
	return n;
}

static const char *team_name(const struct sandbox_table *t, size_t place)
{
	return place < TABLE_PLACES ? t->places[place] : "other";
}

static void put_teams(struct exposition *e, const struct sandbox_table *t)
{
	exposition_family(e, &table[FIGURE_TEAM_SANDBOXES]);
	for (size_t i = 0; i <= TABLE_PLACES; i++)
		for (size_t s = 0; team_name(t, i)[0] && s < COUNT(told_states); s++) {
			uint64_t n = sum_of(t->in_place[i], told_states[s].states);

			if (n > 0)
				exposition_value(e,
						 LABELS({ "team", team_name(t, i) },
							{ "state", told_states[s].name }),
						 n);
		}
}

static void put_sandboxes(struct exposition *e, const struct node *n)
{
	exposition_family(e, &table[FIGURE_SANDBOXES]);
	for (size_t i = 0; i < COUNT(told_states); i++)
		exposition_value(e, LABELS({ "state", told_states[i].name }),
				 sum_of(n->table.in_state, told_states[i].states));
	put_teams(e, &n->table);
	exposition_single(e, &table[FIGURE_SANDBOXES_MAX], n->set[SET_SANDBOXES_MAX].number);
	exposition_family(e, &table[FIGURE_ENDED]);
	for (unsigned int i = 0; i < NODE_REASONS; i++)
		if (node_reason_name(i) && i != NODE_IDLE)
			exposition_value(e, LABELS({ "reason", node_reason_name(i) }),
					 n->figures.ended[i]);
}

static void put_pools(struct exposition *e, const struct node *n)
{
	size_t base = n->pools.base.n_ready;

	exposition_family(e, &table[FIGURE_POOL]);
	exposition_value(e, LABELS({ "source", "base" }), base);
	exposition_value(e, LABELS({ "source", "snapshots" }), n->pools.n_ready - base);
	exposition_single(e, &table[FIGURE_POOL_TARGET], pools_wanted(n));
	exposition_single(e, &table[FIGURE_POOL_MEMORY], n->pools.used_mib * MIB);
	exposition_single(e, &table[FIGURE_SLOTS], n->slots.n_ready);
}

static void put_latency(struct exposition *e, int id, const struct latency *l)
{
	exposition_family(e, &table[id]);
	exposition_latency(e, NO_LABELS, l);
}

static void put_pauses(struct exposition *e, const struct node *n)
{
	const struct figures *f = &n->figures;

	put_latency(e, FIGURE_PAUSE, &f->pause);
	exposition_single(e, &table[FIGURE_PAUSES_FAILED], f->pauses_failed);
	put_latency(e, FIGURE_RESUME, &f->resume);
	exposition_single(e, &table[FIGURE_RESUMES_FAILED], f->resumes_failed);
	put_latency(e, FIGURE_SNAPSHOT, &f->snapshot);
	exposition_single(e, &table[FIGURE_SNAPSHOTS_FAILED], f->snapshots_failed);
	put_latency(e, FIGURE_FORK, &f->fork);
	exposition_family(e, &table[FIGURE_TURNS_WAITING]);
	exposition_value(e, LABELS({ "queue", "saves" }), n->saves.n_waiting);
	exposition_value(e, LABELS({ "queue", "resumes" }), n->resumes.n_waiting);
}

static void put_builds(struct exposition *e, const struct node *n)
{
	static const char *const ends[] = { "ready", "failed", "cancelled" };

	exposition_family(e, &table[FIGURE_BUILDS]);
	exposition_value(e, LABELS({ "state", "running" }), builds_running(n));
	exposition_value(e, LABELS({ "state", "waiting" }), builds_waiting(n));
	exposition_family(e, &table[FIGURE_BUILDS_ENDED]);
	for (size_t i = 0; i < BUILD_ENDS; i++)
		exposition_value(e, LABELS({ "result", ends[i] }), n->figures.builds[i]);
}

static void put_memory(struct exposition *e, const struct node *n)
{
	exposition_single(e, &table[FIGURE_MEMORY_TOTAL], n->memory.total_mib * MIB);
	exposition_single(e, &table[FIGURE_MEMORY_AVAILABLE], n->memory.available_mib * MIB);
	exposition_single(e, &table[FIGURE_MEMORY_PROMISED], admission_promised_mib(n) * MIB);
	exposition_single(e, &table[FIGURE_MEMORY_PROMISED_MAX],
			  admission_promise_max_mib(n) * MIB);
}

static void put_disk(struct exposition *e, const struct node *n)
{
	struct statvfs v = { 0 };
	struct journal_use use = journal_use(n->journal);

	if (fstatvfs(files_root(n->files), &v) == 0) {
		exposition_single(e, &table[FIGURE_DISK], (uint64_t)v.f_blocks * v.f_frsize);
		exposition_single(e, &table[FIGURE_DISK_FREE], (uint64_t)v.f_bavail * v.f_frsize);
	}
	exposition_single(e, &table[FIGURE_DISK_RESERVE],
			  n->set[SET_DISK_RESERVE_MIB].number * MIB);
	put_latency(e, FIGURE_JOURNAL, use.took);
	exposition_single(e, &table[FIGURE_JOURNAL_FAILED], use.failed);
}

static void put_egress(struct exposition *e, const struct egress_counts *c)
{
	exposition_family(e, &table[FIGURE_EGRESS]);
	exposition_value(e, LABELS({ "kind", "name" }, { "verdict", "allowed" }), c->names_allowed);
	exposition_value(e, LABELS({ "kind", "name" }, { "verdict", "refused" }), c->names_refused);
	exposition_value(e, LABELS({ "kind", "connection" }, { "verdict", "allowed" }),
			 c->tcp_allowed);
	exposition_value(e, LABELS({ "kind", "connection" }, { "verdict", "refused" }),
			 c->tcp_refused);
	exposition_value(e, LABELS({ "kind", "connection" }, { "verdict", "failed" }),
			 c->tcp_failed);
	exposition_family(e, &table[FIGURE_EGRESS_BYTES]);
	exposition_value(e, LABELS({ "direction", "out" }), c->bytes_out);
	exposition_value(e, LABELS({ "direction", "in" }), c->bytes_in);
}

static void put_daemons(struct exposition *e, const struct node *n)
{
	const struct link *const links[] = { &n->warden.link, &n->egress, &n->injector.link,
					     &n->images.link };
	struct ready ready;

	exposition_family(e, &table[FIGURE_LINK]);
	for (size_t i = 0; i < COUNT(links); i++)
		if (link_exists(links[i]))
			exposition_value(e, LABELS({ "daemon", links[i]->words->name }),
					 links[i]->up);
	exposition_single(e, &table[FIGURE_TEMPLATE], n->base.state == BASE_READY);
	ready_look(n, &ready);
	exposition_single(e, &table[FIGURE_READY], !ready.reason[0]);
}

static void put_process(struct exposition *e, const struct process_use *p)
{
	exposition_family(e, &table[FIGURE_CPU]);
	exposition_millionths(e, NO_LABELS, process_use_cpu_us());
	exposition_single(e, &table[FIGURE_RESIDENT], process_use_memory(p));
	exposition_family(e, &table[FIGURE_STARTED]);
	exposition_millionths(e, NO_LABELS, p->started_ns / 1000);
	exposition_family(e, &table[FIGURE_BUILD_INFO]);
	exposition_value(e, LABELS({ "version", link_build }), 1);
}

/* `counts` NULL: egress did not say. */
static void answer(struct node *n, struct door_asked *a, const struct egress_counts *counts)
{
	AUTO(buf_done) struct buf out = BUF_MAX(FIGURES_TEXT_MAX);
	struct exposition e = { .out = &out };
	struct err err;

	put_creates(&e, n);
	put_sandboxes(&e, n);
	put_pools(&e, n);
	put_pauses(&e, n);
	put_builds(&e, n);
	put_memory(&e, n);
	put_disk(&e, n);
	put_daemons(&e, n);
	put_process(&e, &n->figures.process);
	if (counts)
		put_egress(&e, counts);
	if (e.failed) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "figures");
		door_refuse(a, &err);
		return;
	}
	door_answer(a, &(struct node_reply){ 0 }, buf_view(&out), NULL, 0);
}

/* --- who asks ----------------------------------------------------------------------------- */

static void ask_free(struct figures_ask *q)
{
	link_cancel(&q->call);
	list_remove(q);
	q->node->figures.n_asks--;
	free(q);
}

static void on_counts(struct link_call *c, const struct link_reply *r)
{
	struct figures_ask *q = CONTAINER_OF(c, struct figures_ask, call);
	const void *head = r->head.ptr; /* aligned: a message has memory of its own */
	const struct egress_reply *reply = head;

	answer(q->node, q->asked, r->err ? NULL : &reply->counts);
	ask_free(q);
}

static bool ask_egress(struct node *n, struct door_asked *a)
{
	const struct egress_asked what = { .verb = EGRESS_TOTALS,
					   .deadline_ms = FIGURES_EGRESS_MS };
	struct figures_ask *q;
	struct err err;

	if (!n->egress.up || !link_exists(&n->egress) || n->figures.n_asks >= FIGURES_ASKS_MAX)
		return false;
	q = calloc(1, sizeof(*q));
	if (!q)
		return false;
	q->node = n;
	q->asked = a;
	list_add(&n->figures.asks, q);
	n->figures.n_asks++;
	if (egress_ask(&n->egress, &q->call, &what, on_counts, &err) == 0)
		return true;
	ask_free(q);
	return false;
}

void figures_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		 struct bytes text)
{
	(void)rq, (void)text;
	if (!ask_egress(n, a))
		answer(n, a, NULL);
}

void figures_close(struct node *n)
{
	while (n->figures.asks)
		ask_free(n->figures.asks);
	process_use_close(&n->figures.process);
}

void figures_print(void)
{
	exposition_print(table, FIGURES, stdout);
}
