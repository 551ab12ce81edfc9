/* ended.c - tombstones: told to who asks, and dropped when they are old. */
#include "node/record/ended.h"

#include "base/list.h"
#include "base/clock.h"
#include "base/log.h"
#include "node/life/sandbox_row.h"
#include "node/node.h"

struct ended_search {
	struct node *node;
	struct door_asked *asked;
	struct err err; /* what is told in any case */
	struct journal_search search;
	struct ended_search *next, **prev;
};

static struct ended_search *search_add(struct node *n, struct door_asked *a)
{
	struct ended_search *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->node = n;
	e->asked = a;
	list_add(&n->ended.searches, e);
	return e;
}

static void search_free(struct ended_search *e)
{
	journal_search_cancel(&e->search);
	list_remove(e);
	free(e);
}

/* --- one ---------------------------------------------------------------------------------- */

static void tell(struct door_asked *a, const struct err *err, const struct node_sandbox *about)
{
	struct node_reply r = { .code = err->code, .sandbox = *about };

	snprintf(r.msg, sizeof(r.msg), "%s", err->msg);
	door_answer(a, &r, (struct bytes){ 0 }, NULL, 0);
}

static void on_one(struct journal_search *s, const struct node_tombstone *found, size_t n,
		   const struct err *err)
{
	struct ended_search *e = CONTAINER_OF(s, struct ended_search, search);
	struct node_sandbox about = { 0 };

	if (err)
		log_error("search for a tombstone: %s", err->msg);
	if (n == 1) {
		memcpy(about.id, found->id, sizeof(about.id));
		memcpy(about.team, found->team, sizeof(about.team));
		memcpy(about.template_id, found->template_id, sizeof(about.template_id));
		about.started_ns = found->started_ns;
		about.ended_ns = found->ended_ns;
		about.reason = found->reason;
	}
	tell(e->asked, &e->err, &about);
	search_free(e);
}

/* Guesses at ids cost no search. */
static bool may_be_ours(const struct node *n, const char *id)
{
	const char *name = n->set[SET_NODE_ID].text;

	return id[0] == 'i' && strncmp(id + 1, name, strlen(name)) == 0 &&
	       strlen(id) == 1 + strlen(name) + SANDBOX_NAME_LENGTH;
}

/* A journal of before may take one for running that was paused since: its files tell. */
static void refuse_ending(struct door_asked *a, const struct sandbox *s, const struct err *err)
{
	const char *id = s->info.id;
	struct err other;

	if (s->absent.keeps_disk && !s->absent.seen_files) {
		err_set(&other, ERR_UNAVAILABLE, 0,
			"sandbox %s lost its VM, and node looks at its files: ask again", id);
		door_refuse(a, &other);
	} else if (aside_tells(s->node, LOST_SANDBOX, s->info.team, id, &other)) {
		door_refuse(a, &other);
	} else {
		tell(a, err, &s->info);
	}
}

void ended_refuse(struct node *n, struct door_asked *a, const struct node_request *rq,
		  const struct err *err)
{
	const struct sandbox *s = table_find(&n->table, rq->id);
	const struct ended_query q = { .team = rq->team, .id = rq->id };
	struct ended_search *e = NULL;
	struct err ignored;

	if (s && s->state == SANDBOX_ENDING && s->info.started_ns > 0 &&
	    (!rq->team[0] || strcmp(s->info.team, rq->team) == 0)) {
		refuse_ending(a, s, err); /* its tombstone is not written yet */
		return;
	}
	if (err->code == ERR_NOT_FOUND && !s && may_be_ours(n, rq->id))
		e = search_add(n, a);
	if (!e) {
		door_refuse(a, err);
		return;
	}
	e->err = *err;
	if (journal_find_ended(n->journal, &e->search, &q, on_one, &ignored) < 0) {
		door_refuse(a, err);
		search_free(e);
	}
}

/* --- many --------------------------------------------------------------------------------- */

static void on_many(struct journal_search *s, const struct node_tombstone *found, size_t n,
		    const struct err *err)
{
	struct ended_search *e = CONTAINER_OF(s, struct ended_search, search);
	const struct bytes all = { (const uint8_t *)found, n * sizeof(*found) };

	static_assert(TOMBSTONES_PAGE * sizeof(*found) + sizeof(struct node_reply) <=
			      NODE_MESSAGE_MAX,
		      "a page is one datagram");
	if (err)
		door_refuse(e->asked, err);
	else
		door_answer(e->asked, &(struct node_reply){ .count = (uint32_t)n }, all, NULL, 0);
	search_free(e);
}

void ended_list(struct node *n, struct door_asked *a, const struct node_request *rq,
		struct bytes text)
{
	const struct ended_query q = { rq->team, rq->id, rq->after_ns };
	struct ended_search *e = search_add(n, a);
	struct err err;

	(void)text;
	if (!e) {
		err_set(&err, ERR_EXHAUSTED, 0, "no memory for a search");
		door_refuse(a, &err);
	} else if (journal_list_ended(n->journal, &e->search, &q, on_many, &err) < 0) {
		door_refuse(a, &err);
		search_free(e);
	}
}

bool ended_tombstone(const struct sandbox *s, struct node_tombstone *ret)
{
	const struct node_sandbox told = sandbox_told(s), *i = &told;

	*ret = (struct node_tombstone){ .started_ns = i->started_ns,
					.ended_ns = i->ended_ns,
					.reason = i->reason };
	memcpy(ret->id, i->id, sizeof(ret->id));
	memcpy(ret->team, i->team, sizeof(ret->team));
	memcpy(ret->template_id, i->template_id, sizeof(ret->template_id));
	return i->team[0] && i->started_ns > 0 && i->reason != NODE_ALIVE;
}

/* --- not for ever ------------------------------------------------------------------------- */

static void on_pruned(struct journal_write *w, const struct err *err)
{
	struct node *n = CONTAINER_OF(w, struct node, ended.write);

	if (err)
		log_error("drop old tombstones: %s", err->msg);
	timer_start(&n->ended.prune, ENDED_PRUNE_MS);
}

static void on_prune(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, ended.prune);
	uint64_t now = clock_wall_ns(), keep = n->set[SET_TOMBSTONES_KEEP_S].number * NSEC_PER_SEC;
	struct err err;

	if (journal_prune(n->journal, &n->ended.write, now > keep ? now - keep : 0, on_pruned,
			  &err) < 0)
		on_pruned(&n->ended.write, &err);
}

void ended_open(struct node *n)
{
	n->ended = (struct ended){ 0 };
	timer_init(&n->ended.prune, n->loop, on_prune);
}

void ended_begin(struct node *n)
{
	timer_start(&n->ended.prune, 0);
}

void ended_close(struct node *n)
{
	timer_stop(&n->ended.prune);
	journal_write_cancel(&n->ended.write);
	while (n->ended.searches)
		search_free(n->ended.searches);
}
