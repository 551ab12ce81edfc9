/* limits.c - counted anew each time: nothing that could be wrong later. */
#include "node/life/limits.h"

#include "node/node.h"

#define YOU       "you have"
#define YOUR_TEAM "your team has"

struct use {
	uint64_t sandboxes, vcpus, memory_mib, disk_mib;
};

static void add(struct use *u, struct limits_sizes more)
{
	u->sandboxes++;
	u->vcpus += more.vcpus;
	u->memory_mib += more.memory_mib;
	u->disk_mib += more.disk_mib;
}

static struct limits_sizes sizes_of(const struct node_sandbox *i)
{
	return (struct limits_sizes){ i->vcpus, i->memory_mib, i->disk_mib };
}

struct limits_sizes limits_of_create(const struct create *c)
{
	const struct node *n = c->node;
	struct limits_sizes ret = { n->sizes.vcpus, n->sizes.memory_mib, n->base.disk_mib };

	if (c->snapshot)
		ret = (struct limits_sizes){ c->snapshot->row.vcpus, c->snapshot->row.memory_mib,
					     c->snapshot->row.disk_mib };
	if (c->vcpus) {
		ret.vcpus = c->vcpus;
		ret.memory_mib = c->memory_mib;
	}
	return ret;
}

static bool by(const char *made_by, const char *key_id)
{
	return !key_id || strcmp(made_by, key_id) == 0;
}

struct whose {
	const char *team, *key_id; /* key_id NULL: of all keys of the team */
	const char *called;
};

static struct use count(const struct node *n, const struct whose *w)
{
	struct use u = { 0 };
	size_t all = 0;
	struct sandbox *const *s = table_after(&n->table, w->team, 0, "", &all);

	for (size_t i = 0; i < all; i++)
		if ((s[i]->info.state == NODE_RUNNING || s[i]->resuming) &&
		    by(s[i]->key_id, w->key_id))
			add(&u, sizes_of(&s[i]->info));
	for (const struct create *c = n->creates.all; c; c = c->all_next)
		if (!c->builder && by(c->key_id, w->key_id) && strcmp(c->team, w->team) == 0)
			add(&u, limits_of_create(c));
	return u;
}

static int allow(const struct node *n, const struct whose *w, const struct node_limits *l,
		 struct limits_sizes more, struct err *err)
{
	struct use u;

	if (!l->sandboxes && !l->vcpus && !l->memory_mib && !l->disk_mib)
		return 0;
	u = count(n, w);
	add(&u, more);
	if (l->sandboxes && u.sandboxes > l->sandboxes)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "%s reached the maximum number of concurrent sandboxes (%u)",
			       w->called, l->sandboxes);
	if (l->vcpus && u.vcpus > l->vcpus)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "%s reached the maximum number of concurrent vCPUs (%u)", w->called,
			       l->vcpus);
	if (l->memory_mib && u.memory_mib > l->memory_mib)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "%s reached the maximum of concurrent memory (%u MiB)", w->called,
			       l->memory_mib);
	if (l->disk_mib && u.disk_mib > l->disk_mib)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "%s reached the maximum of concurrent disk (%u MiB)", w->called,
			       l->disk_mib);
	return 0;
}

int limits_allow(const struct node *n, const char *team, const struct node_request *rq,
		 struct limits_sizes more, struct err *err)
{
	if (allow(n, &(struct whose){ team, rq->key_id, YOU }, &rq->limits, more, err) < 0)
		return -1;
	return allow(n, &(struct whose){ team, NULL, YOUR_TEAM }, &rq->team_limits, more, err);
}

static bool is_paused(const struct sandbox *s)
{
	return s->state == SANDBOX_PAUSED || s->state == SANDBOX_PARKING ||
	       s->state == SANDBOX_PAUSING;
}

static size_t count_paused(const struct node *n, const struct whose *w)
{
	size_t all = 0, paused = 0;
	struct sandbox *const *s = table_after(&n->table, w->team, 0, "", &all);

	for (size_t i = 0; i < all; i++)
		paused += is_paused(s[i]) && by(s[i]->key_id, w->key_id);
	return paused;
}

static int allow_paused(const struct node *n, const struct whose *w, uint32_t limit,
			struct err *err)
{
	if (!limit || count_paused(n, w) < limit)
		return 0;
	return err_set(err, ERR_EXHAUSTED, 0,
		       "%s reached the maximum number of paused sandboxes (%u)", w->called, limit);
}

int limits_allow_paused(const struct node *n, const char *team, const struct node_request *rq,
			struct err *err)
{
	const size_t *in = n->table.in_state;

	if (in[SANDBOX_PAUSED] + in[SANDBOX_PARKING] + in[SANDBOX_PAUSING] >=
	    n->set[SET_PAUSED_MAX].number)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "this host holds %ju paused sandboxes, as many as it may",
			       (uintmax_t)n->set[SET_PAUSED_MAX].number);
	if (allow_paused(n, &(struct whose){ team, rq->key_id, YOU }, rq->limits.paused, err) < 0)
		return -1;
	return allow_paused(n, &(struct whose){ team, NULL, YOUR_TEAM }, rq->team_limits.paused,
			    err);
}
