/* admission.c - may there be one more? What this host has, what a key may have, what it is made of.
 */
#include "node/life/admission.h"

#include <errno.h>
#include <inttypes.h>

#include "node/life/builder.h"
#include "node/life/built_in.h"
#include "node/life/create_queue.h"
#include "node/life/create_text.h"
#include "node/life/limits.h"
#include "node/node.h"

enum { MIB = 1024 * 1024 };

/* Sandboxes that are somebody's and have a VM, or are promised to somebody. */
size_t admission_owned(const struct node *n)
{
	const size_t *in = n->table.in_state;

	return in[SANDBOX_RUNNING] + in[SANDBOX_PAUSING] + in[SANDBOX_WAKING] + n->n_resuming +
	       n->creates.claimed + n->creates.n;
}

size_t admission_starting(const struct node *n)
{
	const size_t *in = n->table.in_state;

	return in[SANDBOX_NOTED] + in[SANDBOX_SLOT] + in[SANDBOX_STARTING] + in[SANDBOX_RESTORING] -
	       n->n_resuming - n->creates.bound;
}

/* What keeps this host's processors busy: claims too, and they go first. */
size_t admission_busy(const struct node *n)
{
	return admission_starting(n) + n->creates.claimed + n->resumes.n;
}

static int admit_one(const struct node *n, struct err *err)
{
	if (n->stopping)
		return err_set(err, ERR_UNAVAILABLE, 0, "node is being stopped");
	if (admission_owned(n) >= n->set[SET_SANDBOXES_MAX].number)
		return err_set(err, ERR_EXHAUSTED, 0, "this host holds %zu sandboxes, as it may",
			       admission_owned(n));
	return 0;
}

/* --- memory ------------------------------------------------------------------------------- */

/* What those take at first that cannot be measured yet. Those begun are not all there, those who
 * wait are not begun. */
static uint64_t unmeasured_mib(const struct node *n)
{
	size_t waiting = n->creates.n, begun = admission_starting(n);

	return ((waiting > begun ? waiting : begun) + n->creates.bound) * MEMORY_SANDBOX_MIB +
	       n->resuming_mib;
}

/* Of those who wait for one of a pool and for whom nothing is begun. */
static uint64_t unserved_mib(const struct node *n, const struct pool *pool)
{
	size_t begun = pool->n_ready + pool->starting;

	return pool->waiting > begun ? (pool->waiting - begun) * pool_guest_mib(n, pool) : 0;
}

/* Of all those who wait and for whom nothing is begun. */
static uint64_t waiting_mib(const struct node *n)
{
	uint64_t mib = unserved_mib(n, &n->pools.base);

	for (const struct pool *p = n->pools.all; p; p = p->next)
		mib += unserved_mib(n, p);
	for (const struct create *c = n->creates.first; c; c = c->next)
		if (!c->pool)
			mib += limits_of_create(c).memory_mib;
	return mib;
}

uint64_t admission_promised_mib(const struct node *n)
{
	return n->table.guest_mib + waiting_mib(n);
}

uint64_t admission_promise_max_mib(const struct node *n)
{
	return memory_promise_max(&n->memory, n->set[SET_MEMORY_OVERCOMMIT].number);
}

struct need { /* one more guest with `guest_mib`, of which it takes `mib` at first */
	uint64_t guest_mib, mib;
};

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* As if `spare` were given back. */
static int check_memory(const struct node *n, struct need need, struct pools_spare spare,
			struct err *err)
{
	uint64_t promised = admission_promised_mib(n), max = admission_promise_max_mib(n);
	uint64_t guest_mib = need.guest_mib, mib = unmeasured_mib(n) + need.mib;

	if (less(promised, spare.guest_mib) + guest_mib > max)
		return err_set(err, ERR_EXHAUSTED, 0,
			       "%" PRIu64 " MiB of memory are promised to sandboxes, %" PRIu64
			       " more are asked for, and this host may promise %" PRIu64
			       " (memory_overcommit = %" PRIu64 ")",
			       promised, guest_mib, max, n->set[SET_MEMORY_OVERCOMMIT].number);
	return memory_watch_allow(&n->memory, less(mib, n->pools.leaving_mib + spare.own_mib), err);
}

/* VMs in pools of snapshots give way, if that helps. */
static int allow_memory(struct node *n, uint64_t guest_mib, uint64_t mib, struct err *err)
{
	const struct need need = { guest_mib, mib };
	const struct pools_spare none = { 0 };
	struct err unused;

	while (check_memory(n, need, none, err) < 0)
		if (check_memory(n, need, pools_spare(n), &unused) < 0 || !pools_yield(n))
			return -1;
	return 0;
}

bool admission_pool(const struct node *n, const struct pool *pool)
{
	const struct need need = { pool_guest_mib(n, pool), MEMORY_SANDBOX_MIB };
	struct err unused;

	return check_memory(n, need, (struct pools_spare){ 0 }, &unused) == 0;
}

int admission_resume(const struct sandbox *s, bool memory, uint64_t *ret_mib, struct err *err)
{
	*ret_mib = MEMORY_SANDBOX_MIB + (memory ? (s->saved_bytes + MIB - 1) / MIB : 0);
	if (admit_one(s->node, err) < 0)
		return -1;
	return allow_memory(s->node, s->info.memory_mib, *ret_mib, err);
}

/* --- creates ------------------------------------------------------------------------------ */

static int admit(const struct create *c, struct err *err)
{
	struct node *n = c->node;
	const struct pool *pool = c->pool;
	uint64_t guest_mib = limits_of_create(c).memory_mib;

	if (admit_one(n, err) < 0)
		return -1;
	if (n->creates.n >= CREATES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%zu creates wait already", n->creates.n);
	if (files_room(n->files, 0, err) < 0)
		return -1;
	if (n->base.state == BASE_FAILED)
		return err_set(err, ERR_UNAVAILABLE, 0, "template %s: %.200s", BASE_ALIAS,
			       n->base.why.msg);
	if (pool && pool->n_ready > pool->waiting)
		return 0; /* it is there, promised and measured */
	if (pool && pool->n_ready + pool->starting > pool->waiting)
		guest_mib = 0; /* of one that is begun, and promised with it */
	return allow_memory(n, guest_mib, MEMORY_SANDBOX_MIB, err);
}

/* What its key and its team may have, of sandboxes and of the queue. It is not counted yet. */
static int allow(struct create *c, const struct node_request *rq, struct err *err)
{
	size_t waiting = creates_waiting(&c->node->creates, c);

	if (limits_allow(c->node, rq->team, rq, limits_of_create(c), err) < 0 ||
	    limits_allow_paused(c->node, rq->team, rq, err) < 0) {
		c->limited = true;
		return -1;
	}
	if (waiting >= CREATES_KEY_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%zu of your creates wait already", waiting);
	return 0;
}

static void choose_pool(struct create *c)
{
	c->pool = pools_of(c->node, c->snapshot);
	if (c->pool)
		c->pool->refs++;
}

void admission_change(struct create *c, struct snapshot *p)
{
	struct snapshot *before = c->snapshot;

	if (c->pool) {
		c->pool->waiting--;
		c->pool->refs--;
	}
	c->snapshot = snapshot_hold(p);
	choose_pool(c);
	if (c->pool) {
		c->pool->waiting++;
		pools_used(c->node, c->pool);
	}
	snapshot_release(before);
}

static int find_template(struct create *c, const struct node_request *rq, struct err *err)
{
	struct snapshot *p;

	if (catalog_lookup(c->node, rq->team, rq->template_id, rq->template_tag, &p, err) < 0)
		return -1;
	c->snapshot = p ? snapshot_hold(p) : NULL;
	if (!p || !(rq->flags & NODE_BOOT)) /* what waits in a pool was loaded with its memory */
		choose_pool(c);
	return 0;
}

int admission_create(struct create *c, const struct node_request *rq, struct bytes text,
		     struct err *err)
{
	if (find_template(c, rq, err) < 0 || built_in_allows(c->snapshot, rq->flags, err) < 0)
		return -1;
	memcpy(c->team, rq->team, sizeof(c->team));
	memcpy(c->key_id, rq->key_id, sizeof(c->key_id));
	memcpy(c->token, rq->token, sizeof(c->token));
	memcpy(c->request, rq->request, sizeof(c->request));
	if ((rq->flags & NODE_BOOT) &&
	    create_text_sizes(text, NODE_TEXT_MAX, &c->vcpus, &c->memory_mib, err) < 0)
		return -1;
	if (lease_check(rq->timeout_s, c->node->set[SET_TIMEOUT_MAX_S].number, err) < 0 ||
	    allow(c, rq, err) < 0 || admit(c, err) < 0)
		return -1;
	c->timeout_s = rq->timeout_s;
	c->flags = rq->flags & (NODE_SECURE | NODE_AUTO_PAUSE | NODE_AUTO_RESUME | NODE_NO_MEMORY |
				NODE_BOOT | NODE_PRIVATE | NODE_INGRESS);
	if (create_text_split(text, NODE_TEXT_MAX, &c->env, &c->text, err) < 0 ||
	    network_allow(c->node, c->text, err) < 0)
		return -1;
	return idempotency_begin(c->node, c, rq, text, err);
}

int admission_copy(struct create *c, const struct create_copy *of, struct err *err)
{
	const struct node_request *rq = of->request;

	c->snapshot = snapshot_hold(of->snapshot);
	c->fork = of->fork;
	c->fork_at = of->at;
	c->timeout_s = rq->timeout_s;
	c->flags = of->flags;
	memcpy(c->team, rq->team, sizeof(c->team));
	memcpy(c->key_id, rq->key_id, sizeof(c->key_id));
	memcpy(c->token, rq->token, sizeof(c->token));
	memcpy(c->request, rq->request, sizeof(c->request));
	if (allow(c, rq, err) < 0 || admit(c, err) < 0)
		return -1;
	if (of->text && !(c->text = strdup(of->text)))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a create");
	if (!of->env)
		return 0;
	return json_decode(bytes_str(of->env), NODE_TEXT_MAX, CREATE_TEXT_DEPTH, &c->env, err);
}

int admission_build(struct create *c, const struct builder_spec *spec, struct err *err)
{
	if (spec->snapshot)
		c->snapshot = snapshot_hold(spec->snapshot);
	snprintf(c->ground, sizeof(c->ground), "%s", spec->ground ? spec->ground : "");
	snprintf(c->team, sizeof(c->team), "%s", spec->team);
	snprintf(c->key_id, sizeof(c->key_id), "%s", spec->key_id ? spec->key_id : "");
	c->vcpus = spec->vcpus;
	c->memory_mib = spec->memory_mib;
	c->flags = (uint32_t)NODE_BUILDER | (spec->boot ? (uint32_t)NODE_BOOT : 0);
	if (admit(c, err) < 0 ||
	    create_text_split(spec->text, NODE_TEXT_MAX, &c->env, &c->text, err) < 0)
		return -1;
	return network_allow(c->node, c->text, err);
}
