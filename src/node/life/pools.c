/* pools.c - what each source's pool may have, and what it has. */
#include "node/life/pools.h"

#include "base/list.h"
#include "base/log.h"
#include "node/life/admission.h"
#include "node/life/end.h"
#include "node/node.h"

/* --- one pool ----------------------------------------------------------------------------- */

static void pool_init(struct pool *pool, struct snapshot *p)
{
	*pool = (struct pool){ .snapshot = p, .vm_mib = MEMORY_SANDBOX_MIB };
	pool->ready_last = &pool->ready;
}

static size_t begun(const struct pool *pool)
{
	return pool->n_ready + pool->starting;
}

uint64_t pool_guest_mib(const struct node *n, const struct pool *pool)
{
	return pool->snapshot ? pool->snapshot->row.memory_mib : n->sizes.memory_mib;
}

static struct pool_limits limits_of(const struct node *n)
{
	return (struct pool_limits){ n->set[SET_POOL_UNUSED_S].number * 1000,
				     (size_t)n->set[SET_POOL_EACH_MAX].number };
}

/* Whose memory was kept, and who is found by a name or an id. */
static bool may_have(const struct node *n, const struct snapshot *p)
{
	return (!p->row.hidden || build_holds(p)) && !p->going && p->row.memory_bytes > 0 &&
	       n->set[SET_POOL_EACH_MAX].number > 0;
}

struct pool *pools_of(struct node *n, struct snapshot *p)
{
	struct pools *all = &n->pools;

	if (!p)
		return &all->base;
	if (!may_have(n, p))
		return NULL;
	if (p->pool || all->n >= POOLS_MAX)
		return p->pool;
	p->pool = calloc(1, sizeof(*p->pool));
	if (!p->pool)
		return NULL;
	pool_init(p->pool, p);
	list_add(&all->all, p->pool);
	all->n++;
	if (!all->look.active)
		timer_repeat(&all->look, POOLS_LOOK_MS);
	return p->pool;
}

static void pool_free(struct node *n, struct pool *pool)
{
	list_remove(pool);
	n->pools.n--;
	pool->snapshot->pool = NULL;
	free(pool);
}

void pools_used(struct node *n, struct pool *pool)
{
	if (!pool->snapshot)
		return;
	pool_used(&pool->use, loop_now_ms(n->loop), limits_of(n).unused_ms);
	list_remove(pool);
	list_add(&n->pools.all, pool);
}

/* --- what is in them ---------------------------------------------------------------------- */

static void count_memory(struct sandbox *s, uint64_t mib)
{
	struct pools *all = &s->node->pools;

	all->used_mib += mib - s->pool_mib;
	s->pool_mib = mib;
	if (s->pool && s->pool->vm_mib < mib)
		s->pool->vm_mib = mib;
}

/* What the kernel counts as its own, when that is more than was promised for it. */
static void measure(struct sandbox *s)
{
	uint64_t mib = vm_group_memory_mib(&s->node->groups, s->info.id);

	count_memory(s, mib > MEMORY_SANDBOX_MIB ? mib : MEMORY_SANDBOX_MIB);
}

/* Once, at the beginning: who reads it first should not be charged for what all share. */
static void warm(struct pool *pool)
{
	struct snapshot *p = pool->snapshot;
	struct files_order o = { .verb = FILES_SNAP_WARM, .need_mib = POOL_WARM_MIB };
	struct err err;

	if (!p || pool->warmed)
		return;
	memcpy(o.id, p->row.id, sizeof(o.id));
	memcpy(o.into, p->row.id, sizeof(o.into));
	pool->warmed = true;
	if (files_ask(p->node->files, NULL, &o, NULL, &err) < 0)
		log_debug("read snapshot %s ahead: %s", p->row.id, err.msg);
}

void pools_begun(struct sandbox *s, struct pool *pool)
{
	s->pool = pool;
	pool->starting++;
	pools_count(s);
	if (!s->for_pool)
		return;
	count_memory(s, MEMORY_SANDBOX_MIB);
	warm(pool);
}

void pools_ready(struct sandbox *s)
{
	struct pool *pool = s->pool;

	pool->starting--;
	pool->n_ready++;
	s->node->pools.n_ready++;
	s->pool_next = NULL;
	*pool->ready_last = s;
	pool->ready_last = &s->pool_next;
	if (creates_pressing(&s->node->creates) > 0) /* somebody gets it at once */
		count_memory(s, MEMORY_SANDBOX_MIB);
	else
		measure(s);
	creates_soon(s->node);
}

static void unready(struct sandbox *s)
{
	struct pool *pool = s->pool;
	struct sandbox **at = &pool->ready;

	while (*at != s)
		at = &(*at)->pool_next;
	*at = s->pool_next;
	if (!*at)
		pool->ready_last = at;
	pool->n_ready--;
	s->node->pools.n_ready--;
}

static void take_out(struct sandbox *s)
{
	if (s->state == SANDBOX_WAITING)
		unready(s);
	else
		s->pool->starting--;
	s->pool = NULL;
}

void pools_leave(struct sandbox *s)
{
	if (!s->pool)
		return;
	take_out(s);
	s->node->pools.leaving_mib += s->pool_mib;
	s->leaves_pool = true;
}

void pools_count(struct sandbox *s)
{
	s->pooled = s->snapshot != NULL;
	if (s->pooled)
		s->snapshot->pooled++;
}

static void uncount(struct sandbox *s)
{
	if (s->pooled)
		s->snapshot->pooled--;
	s->pooled = false;
}

void pools_claim(struct sandbox *s)
{
	if (s->pool)
		take_out(s);
	count_memory(s, 0);
	uncount(s);
}

void pools_freed(struct sandbox *s)
{
	if (s->leaves_pool)
		s->node->pools.leaving_mib -= s->pool_mib;
	count_memory(s, 0);
	uncount(s);
}

/* --- how many ----------------------------------------------------------------------------- */

static uint64_t base_share_mib(const struct node *n)
{
	return n->set[SET_POOL].number * n->pools.base.vm_mib;
}

uint64_t pools_budget_mib(const struct node *n)
{
	uint64_t set = n->set[SET_POOL_MEMORY_MIB].number, share = base_share_mib(n);

	if (set == 0)
		return UINT64_MAX;
	return set > share ? set : share;
}

size_t pools_wanted(const struct node *n)
{
	size_t all = n->pools.base.allowed;

	for (const struct pool *p = n->pools.all; p; p = p->next)
		all += p->allowed;
	return all;
}

static void give(struct pool *pool, size_t vms, uint64_t *mib, size_t *left)
{
	for (; vms > 0 && *left > 0 && *mib >= pool->vm_mib; vms--) {
		pool->allowed++;
		*mib -= pool->vm_mib;
		(*left)--;
	}
}

void pools_share(struct pool *first, uint64_t mib, size_t vms)
{
	for (struct pool *p = first; p; p = p->next) {
		p->allowed = 0;
		give(p, p->wanted > 0, &mib, &vms);
	}
	for (struct pool *p = first; p; p = p->next)
		give(p, p->wanted - p->allowed, &mib, &vms);
}

/* How many VMs there may be in pools of snapshots, beside all that is somebody's. */
static size_t room(const struct node *n)
{
	size_t taken = admission_owned(n) + n->pools.base.allowed;
	uint64_t max = n->set[SET_SANDBOXES_MAX].number;

	return taken < max ? (size_t)(max - taken) : 0;
}

static void end_some(struct pool *pool, const char *why)
{
	struct sandbox *next;

	for (struct sandbox *s = pool->ready; s && pool->n_ready > pool->allowed; s = next) {
		next = s->pool_next;
		sandbox_end(s, NODE_EVICTED, why);
	}
}

/* Whoever they were begun for has another, or left; or nobody comes any more. */
static void end_surplus(struct node *n)
{
	if (creates_pressing(&n->creates) == 0)
		end_some(&n->pools.base, "nobody needs it");
	for (struct pool *p = n->pools.all; p; p = p->next)
		if (p->waiting == 0)
			end_some(p, p->allowed < p->wanted ? "others need its memory"
							   : "nobody needs it");
}

/* What it is used for now. */
static void look_at(const struct node *n, struct pool *p)
{
	uint64_t now = loop_now_ms(n->loop);
	struct pool_limits limits = limits_of(n);

	p->wanted = may_have(n, p->snapshot) ? pool_target(&p->use, now, limits) : 0;
	p->rank = pool_points(&p->use, now, limits.unused_ms) * (begun(p) > 0 ? POOL_HOLD : 1);
}

/* By rank; of equals in the order they are in, which is that of their use. They are nearly sorted
 * since the last time. */
static void sort(struct pools *all)
{
	struct pool *sorted = NULL, *last = NULL, *p;

	while ((p = all->all)) {
		struct pool **at = last && last->rank >= p->rank ? &last->next : &sorted;

		list_remove(p);
		while (*at && (*at)->rank >= p->rank)
			at = &(*at)->next;
		list_add(at, p);
		if (!p->next)
			last = p;
	}
	all->all = sorted;
	if (sorted)
		sorted->prev = &all->all;
}

void pools_plan(struct node *n)
{
	struct pools *all = &n->pools;
	uint64_t budget = pools_budget_mib(n);

	all->base.wanted = all->base.allowed = (size_t)n->set[SET_POOL].number;
	for (struct pool *p = all->all; p; p = p->next)
		look_at(n, p);
	sort(all);
	pools_share(all->all, budget - (budget < UINT64_MAX ? base_share_mib(n) : 0), room(n));
	end_surplus(n);
}

static bool lacks(const struct node *n, const struct pool *pool)
{
	uint64_t budget = pools_budget_mib(n);

	if (begun(pool) >= pool->allowed || !admission_pool(n, pool) ||
	    (pool->snapshot && pool->snapshot->unfit)) /* what waits is given out all the same */
		return false;
	/* of the budget base has its share, whatever is to be removed first */
	return !pool->snapshot || n->pools.used_mib + pool->vm_mib <= budget;
}

struct pool *pools_lacking(struct node *n)
{
	struct pools *all = &n->pools;
	size_t pooled = n->pools.n_ready + admission_starting(n);

	/* a claim under way is somebody's waiting time: what is only for later waits, too */
	if (creates_pressing(&n->creates) > 0 || n->creates.claimed > 0 || n->stopping ||
	    admission_owned(n) + pooled >= n->set[SET_SANDBOXES_MAX].number)
		return NULL;
	if (lacks(n, &all->base))
		return &all->base;
	for (struct pool *p = all->all; p; p = p->next)
		if (lacks(n, p))
			return p;
	return NULL;
}

void pools_failed(struct node *n, struct pool *pool)
{
	if (pool->snapshot) /* the next create for it says whether it can be done at all */
		pool->use = (struct pool_use){ 0 };
	else
		n->creates.pool_rests_until_ms = loop_now_ms(n->loop) + CREATE_POOL_REST_MS;
}

/* --- giving way --------------------------------------------------------------------------- */

/* Of those that are ready, how many no create counts on. */
static size_t spare_vms(const struct pool *pool)
{
	return pool->n_ready > pool->waiting ? pool->n_ready - pool->waiting : 0;
}

struct pools_spare pools_spare(const struct node *n)
{
	struct pools_spare all = { 0 };

	for (const struct pool *p = n->pools.all; p; p = p->next) {
		all.guest_mib += spare_vms(p) * pool_guest_mib(n, p);
		all.own_mib += spare_vms(p) * MEMORY_SANDBOX_MIB;
	}
	return all;
}

bool pools_yield(struct node *n)
{
	struct pool *last = NULL;

	for (struct pool *p = n->pools.all; p; p = p->next)
		if (spare_vms(p) > 0)
			last = p;
	if (!last)
		return false;
	sandbox_end(last->ready, NODE_EVICTED, "somebody needs its memory");
	return true;
}

void pools_drop(struct snapshot *p, const char *why)
{
	if (!p->pool)
		return;
	p->pool->use = (struct pool_use){ 0 };
	list_each(struct sandbox, s, p->node->table.all)
		if (s->pool == p->pool)
			sandbox_end(s, NODE_EVICTED, why);
}

void pools_forget(struct snapshot *p)
{
	if (p->pool)
		pool_free(p->node, p->pool);
}

/* --- what is not used any more ------------------------------------------------------------ */

/* Has any VM its memory mapped, or will have? */
static bool is_mapped(const struct snapshot *p)
{
	for (const struct sandbox *s = p->node->table.all; s; s = s->next)
		if (s->snapshot == p && s->state != SANDBOX_PAUSED)
			return true;
	return false;
}

static void cool(struct snapshot *p)
{
	struct files_order o = { .verb = FILES_SNAP_COOL };
	struct err err;

	p->cached = false;
	memcpy(o.id, p->row.id, sizeof(o.id));
	memcpy(o.into, p->row.id, sizeof(o.into));
	if (files_ask(p->node->files, NULL, &o, NULL, &err) < 0)
		log_debug("snapshot %s stays in the page cache: %s", p->row.id, err.msg);
}

/* A pool that nobody uses and that has nothing ends, when its snapshot's memory has left the page
 * cache; that waits for the last VM of it. */
static void tidy(struct node *n)
{
	uint64_t now = loop_now_ms(n->loop);
	unsigned int left = POOLS_TIDY_MAX;

	list_each(struct pool, p, n->pools.all) {
		if (p->wanted > 0 || p->refs > 0 || begun(p) > 0 || now < p->tidy_ms || left == 0)
			continue;
		left--;
		p->tidy_ms = now + POOLS_TIDY_MS;
		if (is_mapped(p->snapshot))
			continue;
		cool(p->snapshot);
		pool_free(n, p);
	}
}

void pools_note_cached(struct snapshot *p)
{
	p->cached = true;
	p->cached_ms = loop_now_ms(p->node->loop);
}

void pools_cool_unused(struct node *n)
{
	uint64_t now = loop_now_ms(n->loop), after = n->set[SET_POOL_UNUSED_S].number * 1000;
	size_t left = POOLS_COOL_MAX;

	for (const struct sandbox *s = n->table.all; s; s = s->next)
		if (s->snapshot && s->state != SANDBOX_PAUSED)
			pools_note_cached(s->snapshot);
	for (struct snapshot *p = n->snapshots.all; p && left > 0; p = p->next) {
		if (p->cached && p->cached_ms == 0)
			p->cached_ms = now;
		if (!p->cached || p->pool || p->readers > 0 || p->going ||
		    now - p->cached_ms < after)
			continue;
		cool(p);
		left--;
	}
}

/* One of a snapshot has processes that are frozen, if its guest does as it should: one that works
 * instead is not kept, and no other is begun before the next create. */
static void measure_all(struct pool *pool)
{
	struct sandbox *next;

	for (struct sandbox *s = pool->ready; s; s = next) {
		next = s->pool_next;
		measure(s);
		if (!pool->snapshot || s->pool_mib <= POOL_VM_MIB_MAX)
			continue;
		pool->use = (struct pool_use){ 0 };
		sandbox_end(s, NODE_EVICTED, "it takes too much for one that waits");
	}
}

static void on_look(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, pools.look);

	measure_all(&n->pools.base);
	for (struct pool *p = n->pools.all; p; p = p->next)
		measure_all(p);
	tidy(n);
	if (n->pools.n == 0)
		timer_stop(t);
	creates_soon(n);
}

void pools_open(struct node *n)
{
	n->pools = (struct pools){ 0 };
	pool_init(&n->pools.base, NULL);
	timer_init(&n->pools.look, n->loop, on_look);
}

void pools_close(struct node *n)
{
	timer_stop(&n->pools.look);
	for (struct sandbox *s = n->table.all; s; s = s->next)
		s->pool = NULL;
	while (n->pools.all)
		pool_free(n, n->pools.all);
}
