/* builds.c - builds in the order they were asked for: so many at once, and of one team fewer. */
#include "node/build/builds.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/log.h"
#include "node/build/build_run.h"
#include "node/node.h"

static size_t running_of(const struct node *n, const char *team)
{
	size_t all = 0;

	for (const struct build_run *r = n->builds.running; r; r = r->list_next)
		all += !team || (r->build && strcmp(r->build->template->row.team, team) == 0);
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

/* The first whose team may have another one. */
static struct build_run *next_of(struct node *n)
{
	struct build_run *r = n->builds.waiting.first;

	while (r && running_of(n, r->build->template->row.team) >= n->set[SET_BUILDS_TEAM].number)
		r = r->list_next;
	return r;
}

static void start_more(struct node *n)
{
	struct build_run *r;

	while (!n->stopping && running_of(n, NULL) < n->set[SET_BUILDS_MAX].number &&
	       (r = next_of(n))) {
		queue_remove_by(&n->builds.waiting, r, list_next, list_prev);
		list_add_by(&n->builds.running, r, list_next, list_prev);
		build_run_begin(r);
	}
}

void builds_open(struct node *n)
{
	queue_init(&n->builds.waiting);
}

void builds_begin(struct node *n, struct build *b)
{
	struct build_run *r = calloc(1, sizeof(*r));

	if (!r) {
		build_failed(b, "base", "no memory for a build");
		return;
	}
	r->node = n;
	r->build = b;
	r->on_over = on_over;
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

void builds_close(struct node *n)
{
	struct build_run *r;

	while ((r = n->builds.running)) {
		list_remove_by(r, list_next, list_prev);
		build_run_drop(r);
		free(r);
	}
	while ((r = n->builds.waiting.first)) {
		queue_remove_by(&n->builds.waiting, r, list_next, list_prev);
		free(r);
	}
}
