/* pools_text.c - what is said of pools. */
#include "node/life/pools_text.h"

#include "node/node.h"

static uint64_t memory_mib(const struct pool *pool)
{
	uint64_t mib = pool->starting * MEMORY_SANDBOX_MIB;

	for (const struct sandbox *s = pool->ready; s; s = s->pool_next)
		mib += s->pool_mib;
	return mib;
}

void pool_sum_add(struct pool_sum *sum, const struct pool *pool)
{
	if (!pool)
		return;
	sum->ready += pool->n_ready;
	sum->starting += pool->starting;
	sum->wanted += pool->wanted;
	sum->memory_mib += memory_mib(pool);
}

int pool_sum_describe(const struct pool_sum *sum, json_t *to)
{
	return json_object_set_new(to, "poolReady", json_integer((json_int_t)sum->ready)) |
	       json_object_set_new(to, "poolStarting", json_integer((json_int_t)sum->starting)) |
	       json_object_set_new(to, "poolWanted", json_integer((json_int_t)sum->wanted)) |
	       json_object_set_new(to, "poolMemoryMB", json_integer((json_int_t)sum->memory_mib));
}

int pool_describe(const struct pool *pool, json_t *to)
{
	struct pool_sum sum = { 0 };

	pool_sum_add(&sum, pool);
	return pool_sum_describe(&sum, to);
}

/* What came of a build has no name of its own. */
static json_t *name_json(const struct snapshot *p)
{
	const struct journal_template *t = p && p->build ? &p->build->template->row : NULL;

	if (t)
		return json_sprintf("%s/%s", t->namespace, t->name);
	return json_string(p ? p->row.name : BASE_ALIAS);
}

static json_t *one_json(const struct node *n, const struct pool *pool)
{
	const struct snapshot *p = pool->snapshot;

	return json_pack("{s:s, s:o, s:s, s:I, s:I, s:I, s:I, s:I}", "templateID",
			 p ? p->row.id : n->base.id, "name", name_json(p), "teamID",
			 p ? p->row.team : "", "ready", (json_int_t)pool->n_ready, "starting",
			 (json_int_t)pool->starting, "wanted", (json_int_t)pool->wanted, "allowed",
			 (json_int_t)pool->allowed, "memoryMB", (json_int_t)memory_mib(pool));
}

int pools_describe(const struct node *n, json_t *status)
{
	uint64_t budget = pools_budget_mib(n);
	json_t *all = json_array();
	size_t told = 0;
	int failed = json_array_append_new(all, one_json(n, &n->pools.base));

	for (const struct pool *p = n->pools.all; p && told < POOLS_TOLD; p = p->next, told++)
		failed |= json_array_append_new(all, one_json(n, p));
	return failed | json_object_set_new(status, "pools", all) |
	       json_object_set_new(status, "poolMemoryMB",
				   json_integer((json_int_t)n->pools.used_mib)) |
	       json_object_set_new(status, "poolMemoryMaxMB",
				   json_integer(budget == UINT64_MAX ? 0 : (json_int_t)budget));
}
