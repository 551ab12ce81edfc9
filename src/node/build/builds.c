/* builds.c - which build is next: so many at once, of one team fewer, and teams take turns. */
#include "node/build/builds.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "node/build/build_run.h"
#include "node/build/refreeze.h"
#include "node/node.h"

/* One that the team asked for: those that node itself has begun are nobody's. */
static bool is_of(const struct build_run *r, const char *team)
{
	return r->build && !r->refreezes && strcmp(r->build->template->row.team, team) == 0;
}

static size_t running_of(const struct node *n, const char *team)
{
	size_t all = 0;

	for (const struct build_run *r = n->builds.running; r; r = r->list_next)
		all += !team || is_of(r, team);
	return all;
}

static size_t refreezing(const struct node *n)
{
	size_t all = 0;

	for (const struct build_run *r = n->builds.running; r; r = r->list_next)
		all += r->refreezes;
	return all;
}

static void start_more(struct node *n);

static void on_over(struct build_run *r)
{
	struct node *n = r->node;

	list_remove_by(r, list_next, list_prev);
	free(r);
	start_more(n);
}

/* Of those whose team may have another one: of the team that waits for its turn for the longest
 * time, the first. */
static struct build_run *next_of(struct node *n)
{
	struct build_run *found = NULL;

	for (struct build_run *r = n->builds.waiting.first; r; r = r->list_next)
		if ((!found || r->turn < found->turn) &&
		    running_of(n, r->build->template->row.team) < n->set[SET_BUILDS_TEAM].number)
			found = r;
	return found;
}

/* Its team has its turn, all of it. */
static void take_turn(struct node *n, const struct build_run *r)
{
	const char *team = r->build->template->row.team;

	n->builds.turns++;
	for (struct build_run *w = n->builds.waiting.first; w; w = w->list_next)
		if (is_of(w, team))
			w->turn = n->builds.turns;
	for (struct build_run *w = n->builds.running; w; w = w->list_next)
		if (is_of(w, team))
			w->turn = n->builds.turns;
}

static struct build_run *make_run(struct node *n, struct build *b)
{
	struct build_run *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->node = n;
	r->build = b;
	r->on_over = on_over;
	return r;
}

static struct build_run *take_waiting(struct node *n)
{
	struct build_run *r = next_of(n);

	if (r)
		queue_remove_by(&n->builds.waiting, r, list_next, list_prev);
	return r;
}

/* Those that nobody waits for one after the other: builds of users find a place beside them. */
static struct build_run *take_refreeze(struct node *n, bool wanted)
{
	struct build *b = !wanted && refreezing(n) > 0 ? NULL : refreeze_next(n, wanted);
	struct build_run *r = b ? make_run(n, b) : NULL;

	if (!r)
		return NULL;
	r->refreezes = true;
	refreeze_begun(b);
	return r;
}

static struct build_run *take_next(struct node *n)
{
	struct build_run *r = take_refreeze(n, true);

	if (!r)
		r = take_waiting(n);
	return r ? r : take_refreeze(n, false);
}

static void start_more(struct node *n)
{
	struct build_run *r;

	while (!n->stopping && running_of(n, NULL) < n->set[SET_BUILDS_MAX].number &&
	       (r = take_next(n))) {
		list_add_by(&n->builds.running, r, list_next, list_prev);
		if (!r->refreezes)
			take_turn(n, r);
		build_run_begin(r);
	}
}

void builds_more(struct node *n)
{
	start_more(n);
}

void builds_open(struct node *n)
{
	queue_init(&n->builds.waiting);
}

static uint64_t last_turn(const struct node *n, const char *team)
{
	for (const struct build_run *r = n->builds.running; r; r = r->list_next)
		if (is_of(r, team))
			return r->turn;
	return 0;
}

void builds_begin(struct node *n, struct build *b)
{
	struct build_run *r = make_run(n, b);

	if (!r) {
		build_failed(b, "base", "no memory for a build");
		return;
	}
	r->turn = last_turn(n, b->template->row.team);
	queue_add_by(&n->builds.waiting, r, list_next, list_prev);
	start_more(n);
}

static struct build_run *find(struct build_run *list, const struct build *b)
{
	while (list && list->build != b)
		list = list->list_next;
	return list;
}

void builds_cancel(struct node *n, struct build *b)
{
	struct build_run *r = find(n->builds.running, b);

	if (r) {
		build_run_cancel(r);
		return;
	}
	r = find(n->builds.waiting.first, b);
	if (!r)
		return;
	queue_remove_by(&n->builds.waiting, r, list_next, list_prev);
	free(r);
	build_cancelled(b);
}

void builds_drop(struct node *n, struct build *b)
{
	struct build_run *r = find(n->builds.running, b);

	if (!r)
		return;
	list_remove_by(r, list_next, list_prev);
	build_run_drop(r);
	free(r);
	refreezes_soon(n);
}

size_t builds_holding(const struct node *n, const struct snapshot *p)
{
	size_t all = 0;

	for (const struct build_run *r = n->builds.running; r; r = r->list_next)
		all += r->at == p;
	return all;
}

size_t builds_running(const struct node *n)
{
	return running_of(n, NULL);
}

size_t builds_waiting(const struct node *n)
{
	size_t found = 0;

	for (const struct build_run *r = n->builds.waiting.first; r; r = r->list_next)
		found++;
	return found;
}

void builds_close(struct node *n)
{
	struct build_run *r;

	while ((r = n->builds.running)) {
		list_remove_by(r, list_next, list_prev);
		if (r->refreezes && r->build)
			refreeze_dropped(r->build);
		build_run_drop(r);
		free(r);
	}
	while ((r = n->builds.waiting.first)) {
		queue_remove_by(&n->builds.waiting, r, list_next, list_prev);
		free(r);
	}
}
