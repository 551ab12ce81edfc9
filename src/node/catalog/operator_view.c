/* operator_view.c - templates with sizes, pools and users: node/door/README.md has the shapes. */
#include "node/catalog/operator_view.h"

#include "node/catalog/catalog_json.h"
#include "node/catalog/template_verbs.h"
#include "node/life/pools_text.h"
#include "node/node.h"

enum {
	VIEW_PAGE = 64,        /* templates of one answer, which must fit */
	VIEW_TAGS_MAX = 8,     /* of one of a list */
	VIEW_REASON_MAX = 400, /* bytes; all of it is in the log of the build */
};

/* --- numbers ------------------------------------------------------------------------------ */

/* Sandboxes that run, by what they were made of: into `running` of each snapshot. */
static void count_running(struct node *n)
{
	for (struct snapshot *p = n->snapshots.all; p; p = p->next)
		p->running = 0;
	for (const struct sandbox *s = n->table.all; s; s = s->next)
		if (s->snapshot && !s->pooled && s->state == SANDBOX_RUNNING)
			s->snapshot->running++;
}

struct total { /* of all builds of a template */
	json_int_t own, shared, running;
	struct pool_sum pools;
};

static struct total add_up(const struct template *t)
{
	struct total sum = { 0 };

	for (const struct build *b = t->builds; b; b = b->next) {
		const struct snapshot *p = b->snapshot;

		if (!p)
			continue;
		sum.own += (json_int_t)p->own_bytes;
		sum.shared += (json_int_t)p->shared_bytes;
		sum.running += (json_int_t)p->running;
		pool_sum_add(&sum.pools, p->pool);
	}
	return sum;
}

/* Each that could not be said is missing: no memory. */
static void set(json_t *to, const char *name, json_t *v)
{
	(void)json_object_set_new(to, name, v);
}

static void set_total(json_t *to, const struct template *t)
{
	const struct total sum = add_up(t);
	bool known = t->node->catalog.sizes.known;

	set(to, "diskBytes", known ? json_integer(sum.own) : json_null());
	set(to, "sharedBytes", known ? json_integer(sum.shared) : json_null());
	set(to, "running", json_integer(sum.running));
	(void)pool_sum_describe(&sum.pools, to);
}

/* --- a list ------------------------------------------------------------------------------- */

static json_t *names_of_tags(const struct template *t, const struct build *b, size_t max)
{
	json_t *all = json_array();

	for (size_t i = 0; i < t->tags.n && json_array_size(all) < max; i++)
		if (!b || strcmp(t->tags.all[i].build_id, b->row.id) == 0)
			(void)json_array_append_new(all, json_string(t->tags.all[i].name));
	return all;
}

static json_t *row_json(const struct template *t)
{
	json_t *v = template_json(t);

	if (!v)
		return NULL;
	set_total(v, t);
	set(v, "tagCount", json_integer((json_int_t)t->tags.n));
	set(v, "tagNames", names_of_tags(t, NULL, VIEW_TAGS_MAX));
	return v;
}

void operator_list(struct node *n, struct door_asked *a, const struct node_request *rq,
		   struct bytes text)
{
	size_t max = rq->count && rq->count < VIEW_PAGE ? rq->count : VIEW_PAGE;
	json_t *all = json_array();

	(void)text;
	count_running(n);
	for (const struct template *t = n->catalog.all; t && json_array_size(all) < max;
	     t = t->next)
		if (!t->going && (!rq->after_ns || t->row.created_ns < rq->after_ns))
			(void)json_array_append_new(all, row_json(t));
	catalog_answer(a, all);
}

/* --- one of them -------------------------------------------------------------------------- */

static json_t *build_view(const struct build *b)
{
	const struct snapshot *p = b->snapshot;
	bool known = p && b->template->node->catalog.sizes.known;
	struct bytes why = bytes_str(b->row.reason ? b->row.reason : "");
	json_t *v = build_json(b), *reason = json_object_get(v, "reason");

	if (!v)
		return NULL;
	if (json_is_object(reason) && why.len > VIEW_REASON_MAX) {
		why.len = VIEW_REASON_MAX;
		set(reason, "message", json_text(why));
	}
	set(v, "tagNames", names_of_tags(b->template, b, TEMPLATE_TAGS_MAX));
	set(v, "diskBytes", known ? json_integer((json_int_t)p->own_bytes) : json_null());
	set(v, "sharedBytes", known ? json_integer((json_int_t)p->shared_bytes) : json_null());
	set(v, "running", json_integer(p ? (json_int_t)p->running : 0));
	set(v, "why", p ? snapshot_why(p) : json_array());
	return v;
}

void operator_get(struct node *n, struct door_asked *a, const struct node_request *rq,
		  struct bytes text)
{
	struct err err;
	const struct template *t = catalog_own(n, rq->team, rq->template_id, &err);
	json_t *v, *builds = json_array();

	(void)text;
	if (!t) {
		json_decref(builds);
		door_refuse(a, &err);
		return;
	}
	count_running(n);
	for (const struct build *b = t->builds; b; b = b->next)
		(void)json_array_append_new(builds, build_view(b));
	v = row_json(t);
	set(v, "builds", builds);
	set(v, "tags", template_tags_json(t));
	catalog_answer(a, v);
}
