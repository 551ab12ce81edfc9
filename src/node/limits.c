/* limits.c - counted anew each time: nothing that could be wrong later. */
#include "node/limits.h"

#include "node/node.h"

struct use {
	uint64_t sandboxes, vcpus, memory_mib, disk_mib;
};

static void add(struct use *u, uint32_t vcpus, uint32_t memory_mib, uint32_t disk_mib)
{
	u->sandboxes++;
	u->vcpus += vcpus;
	u->memory_mib += memory_mib;
	u->disk_mib += disk_mib;
}

static void add_new(struct use *u, const struct node *n)
{
	add(u, n->sizes.vcpus, n->sizes.memory_mib, n->base.disk_mib);
}

static struct use count(const struct node *n, const char *team, const char *key_id)
{
	struct use u = { 0 };
	size_t all = 0;
	struct sandbox *const *s = table_after(&n->table, team, 0, "", &all);

	for (size_t i = 0; i < all; i++)
		if ((s[i]->info.state == NODE_RUNNING || s[i]->resuming) &&
		    strcmp(s[i]->key_id, key_id) == 0)
			add(&u, s[i]->info.vcpus, s[i]->info.memory_mib, s[i]->info.disk_mib);
	for (const struct create *c = n->creates.all; c; c = c->all_next)
		if (strcmp(c->key_id, key_id) == 0 && strcmp(c->team, team) == 0)
			add_new(&u, n);
	return u;
}

int limits_allow(const struct node *n, const char *team, const char *key_id,
		 const struct node_limits *l, struct err *err)
{
	struct use u;

	if (!l->sandboxes && !l->vcpus && !l->memory_mib && !l->disk_mib)
		return 0;
	u = count(n, team, key_id);
	add_new(&u, n);
	if (l->sandboxes && u.sandboxes > l->sandboxes)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "you have reached the maximum number of concurrent sandboxes (%u)",
			       l->sandboxes);
	if (l->vcpus && u.vcpus > l->vcpus)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "you have reached the maximum number of concurrent vCPUs (%u)",
			       l->vcpus);
	if (l->memory_mib && u.memory_mib > l->memory_mib)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "you have reached the maximum of concurrent memory (%u MiB)",
			       l->memory_mib);
	if (l->disk_mib && u.disk_mib > l->disk_mib)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "you have reached the maximum of concurrent disk (%u MiB)",
			       l->disk_mib);
	return 0;
}

static bool is_paused(const struct sandbox *s)
{
	return s->state == SANDBOX_PAUSED || s->state == SANDBOX_PARKING ||
	       s->state == SANDBOX_PAUSING;
}

static size_t count_paused(const struct node *n, const char *team, const char *key_id)
{
	size_t all = 0, paused = 0;
	struct sandbox *const *s = table_after(&n->table, team, 0, "", &all);

	for (size_t i = 0; i < all; i++)
		paused += is_paused(s[i]) && strcmp(s[i]->key_id, key_id) == 0;
	return paused;
}

int limits_allow_paused(const struct node *n, const char *team, const char *key_id,
			const struct node_limits *l, struct err *err)
{
	const size_t *in = n->table.in_state;

	if (in[SANDBOX_PAUSED] + in[SANDBOX_PARKING] + in[SANDBOX_PAUSING] >=
	    n->set[SET_PAUSED_MAX].number)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "this host holds %ju paused sandboxes, as many as it may",
			       (uintmax_t)n->set[SET_PAUSED_MAX].number);
	if (l->paused && count_paused(n, team, key_id) >= l->paused)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "you have reached the maximum number of paused sandboxes (%u)",
			       l->paused);
	return 0;
}
