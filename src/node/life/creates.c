/* creates.c - admission, the queue, and who gets which sandbox. */
#include "node/life/admission.h"

#include <errno.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "node/life/builder.h"
#include "node/life/claim.h"
#include "node/life/create_queue.h"
#include "node/life/end.h"
#include "node/life/fork.h"
#include "node/life/sandbox_row.h"
#include "node/node.h"
#include "node/life/start.h"

static void turn(struct timer *t);

/* --- one create --------------------------------------------------------------------------- */

static void create_free(struct create *c)
{
	timer_stop(&c->patience);
	list_remove_by(c, all_next, all_prev);
	json_decref(c->env);
	free(c->text);
	if (c->pool)
		c->pool->refs--;
	snapshot_release(c->snapshot);
	free(c);
}

static void answer(struct create *c, const struct node_reply *r)
{
	if (c->builder)
		builder_refused(c->builder, r);
	else if (c->fork)
		fork_answer(c->fork, c->fork_at, r);
	else
		door_answer(c->asked, r, (struct bytes){ 0 }, NULL, 0);
}

static void enqueue(struct create *c, bool first)
{
	creates_enqueue(&c->node->creates, c, first);
}

static void dequeue(struct create *c)
{
	creates_dequeue(&c->node->creates, c);
}

/* When it is worth another try; 0: nobody knows, it depends on what the caller ends. */
static uint32_t retry_after(const struct create *c, const struct err *why)
{
	if (why->code != ERR_EXHAUSTED || c->limited)
		return 0;
	return CREATE_RETRY_S + (uint32_t)(c->node->creates.n / CREATES_PER_S);
}

static void refuse(struct create *c, const struct err *why)
{
	struct node_reply r = { .code = why->code, .retry_s = retry_after(c, why) };

	dequeue(c);
	figures_refused(c->node, c, why);
	idempotency_failed(c, why);
	memcpy(r.msg, why->msg, sizeof(r.msg));
	answer(c, &r);
	create_free(c);
}

void creates_refuse_all(struct node *n, const struct err *why)
{
	while (n->creates.first)
		refuse(n->creates.first, why);
}

static bool is_wanted(const struct create *c)
{
	return c->builder || door_wanted(c->fork ? fork_asked(c->fork) : c->asked) ||
	       idempotency_awaited(c);
}

static void drop_unwanted(struct create *c)
{
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "no sandbox while somebody waited for it");
	refuse(c, &err);
}

void creates_drop_unwanted(struct node *n)
{
	list_each(struct create, c, n->creates.first)
		if (!is_wanted(c))
			drop_unwanted(c);
}

/* --- patience ----------------------------------------------------------------------------- */

/* Since when the create waits for a daemon that is gone, in ms of the loop; 0: for none. */
static uint64_t gone_since(const struct create *c)
{
	const struct node *n = c->node;
	uint64_t since = 0;

	if (!n->warden.link.up)
		since = n->warden.link.down_since_ms;
	else if (!n->egress.up)
		since = n->egress.down_since_ms;
	else
		return 0;
	return since > c->since_ms ? since : c->since_ms;
}

static void be_patient(struct create *c)
{
	uint64_t now = loop_now_ms(c->node->loop), gone = gone_since(c);
	uint64_t until = (gone ? gone : now) + CREATE_LINK_MS;

	timer_start(&c->patience, until > now ? until - now : 1);
}

static void on_impatient(struct timer *t)
{
	struct create *c = CONTAINER_OF(t, struct create, patience);
	uint64_t now = loop_now_ms(c->node->loop), gone = gone_since(c);
	struct err err;

	if (!c->prev) /* it has its sandbox, which has limits of its own */
		return;
	if (gone && now - gone >= CREATE_LINK_MS) {
		node_links_why(c->node, &err);
		refuse(c, &err);
	} else if (now - c->since_ms >= CREATE_WAIT_MS) {
		err_set(&err, ERR_TIMEOUT, 0, "no sandbox in %d seconds%s", CREATE_WAIT_MS / 1000,
			c->snapshot && c->snapshot->unfit ? ": its template is frozen again" : "");
		refuse(c, &err);
	} else {
		be_patient(c);
	}
}

/* --- new ones ----------------------------------------------------------------------------- */

static struct create *make_create(struct node *n, struct door_asked *asked)
{
	struct create *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->node = n;
	c->asked = asked;
	c->since_ms = loop_now_ms(n->loop);
	timer_init(&c->patience, n->loop, on_impatient);
	return c;
}

static void begin_waiting(struct create *c)
{
	list_add_by(&c->node->creates.all, c, all_next, all_prev);
	enqueue(c, false);
	be_patient(c);
	if (c->pool)
		pools_used(c->node, c->pool);
	creates_soon(c->node);
}

void creates_ask(struct node *n, struct door_asked *asked, const struct node_request *rq,
		 struct bytes text)
{
	struct create *c;
	struct err err;

	if (idempotency_take(n, asked, rq, text))
		return;
	c = make_create(n, asked);
	if (!c) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "a create");
		door_refuse(asked, &err);
		return;
	}
	if (admission_create(c, rq, text, &err) < 0)
		refuse(c, &err);
	else
		begin_waiting(c);
}

void creates_fork(struct node *n, const struct create_copy *of)
{
	struct create *c = make_create(n, NULL);
	struct node_reply none = { .code = ERR_EXHAUSTED, .msg = "no memory for a create" };
	struct err err;

	if (!c)
		fork_answer(of->fork, of->at, &none);
	else if (admission_copy(c, of, &err) < 0)
		refuse(c, &err);
	else
		begin_waiting(c);
}

struct create *creates_build(struct node *n, struct builder *b, const struct builder_spec *spec,
			     struct err *err)
{
	struct create *c = make_create(n, NULL);

	if (!c) {
		err_set(err, ERR_EXHAUSTED, ENOMEM, "a create");
		return NULL;
	}
	c->builder = b;
	if (admission_build(c, spec, err) < 0) {
		create_free(c);
		return NULL;
	}
	begin_waiting(c);
	return c;
}

/* As when it failed, but that nobody waits for another. */
static void give_up_sandbox(struct sandbox *s)
{
	s->node->creates.claimed--;
	s->node->creates.bound -= s->state < SANDBOX_WAITING;
	s->create = NULL;
	sandbox_end(s, NODE_KILLED, "nobody wants it any more");
}

void creates_give_up(struct create *c)
{
	struct node *n = c->node;

	list_each(struct sandbox, s, n->table.all)
		if (s->create == c) {
			give_up_sandbox(s);
			break;
		}
	dequeue(c);
	create_free(c);
	creates_soon(n);
}

/* --- what sandboxes report ---------------------------------------------------------------- */

/* What it wants may be frozen again. */
static bool is_final(const struct create *c, const struct err *why)
{
	return why->code == ERR_MISMATCH && !(c->snapshot && refreeze_doubt(c->snapshot));
}

/* A start wants nothing that the client named: what is missing, in the way or refused on it is of
 * this host. To a client "not found" would be its template. */
static struct err of_the_host(const struct err *why)
{
	struct err told = *why;

	if (why->code == ERR_NOT_FOUND || why->code == ERR_EXISTS || why->code == ERR_DENIED)
		told.code = ERR_INTERNAL;
	return told;
}

static void blame(struct create *c, const struct err *why)
{
	bool never =
		is_final(c, why) || (why->code == ERR_BASE_LOST && (c->snapshot || c->ground[0]));
	struct err told = of_the_host(why);

	if (++c->tries >= CREATE_TRIES_MAX || never)
		refuse(c, &told);
}

/* Who would have had one that was begun for nobody. */
static struct create *first_of(const struct creates *q, const struct pool *pool)
{
	struct create *c = q->first;

	while (c && c->pool != pool)
		c = c->next;
	return c;
}

void creates_failed(struct sandbox *s, const struct err *why)
{
	struct node *n = s->node;
	struct create *c = TAKE(s->create);

	if (c) {
		n->creates.claimed--;
		n->creates.bound -= s->state < SANDBOX_WAITING;
		enqueue(c, true);
		be_patient(c);
	} else if (s->pool && s->state < SANDBOX_WAITING) {
		c = first_of(&n->creates, s->pool);
	}
	if (c && !is_wanted(c))
		drop_unwanted(c);
	else if (c && n->warden.link.up)
		blame(c, why);
	else if (!c && s->pool)
		pools_failed(n, s->pool);
	creates_soon(n);
}

void creates_done(struct sandbox *s)
{
	const struct node_reply r = { .sandbox = sandbox_told(s) };
	struct create *c = TAKE(s->create);
	struct node *n = s->node;

	n->creates.claimed--;
	figures_created(n, c, s);
	if (s->snapshot)
		pools_note_cached(s->snapshot);
	if (!c->builder && s->snapshot) {
		catalog_spawned(s->snapshot);
	} else if (!c->builder) {
		n->base.spawns++;
		n->base.spawned_ns = clock_wall_ns();
	}
	idempotency_done(c, s);
	if (c->builder)
		builder_runs(c->builder, s);
	else
		answer(c, &r);
	create_free(c);
	creates_soon(n);
}

/* --- the turn ----------------------------------------------------------------------------- */

static void give_out(struct node *n)
{
	struct creates *q = &n->creates;

	for (struct create *c, *next = q->first; n->pools.n_ready > 0 && (c = next);) {
		struct sandbox *s = c->pool ? c->pool->ready : NULL;

		next = c->next;
		if (!s)
			continue;
		creates_take(q, c);
		q->claimed++;
		sandbox_claim(s, c);
	}
}

static void end_outdated(struct node *n)
{
	struct sandbox *next;

	for (struct sandbox *s = n->pools.base.ready; s; s = next) {
		next = s->pool_next;
		if (strcmp(s->info.template_id, n->base.id) != 0)
			sandbox_end(s, NODE_EVICTED, "its template was replaced");
	}
}

void creates_bound_ready(struct sandbox *s)
{
	s->node->creates.bound--;
	sandbox_claim(s, s->create);
}

static bool begin_copy(struct node *n, struct create *c)
{
	struct creates *q = &n->creates;
	struct err err;

	creates_take(q, c);
	if (sandbox_begin_copy(n, c, &err)) {
		q->claimed++;
		q->bound++;
		return true;
	}
	log_error("begin a copy of %s: %s", c->snapshot ? c->snapshot->row.id : c->ground, err.msg);
	refuse(c, &err);
	return false;
}

/* `wants`: because of that one, whoever gets it; NULL: for the pool. */
static bool begin(struct node *n, struct pool *pool, const struct create *wants)
{
	struct create *c = first_of(&n->creates, pool);
	struct err err;

	if (sandbox_begin(n, pool, wants ? wants->request : NULL, &err))
		return true;
	log_error("begin a sandbox: %s", err.msg);
	if (c)
		blame(c, &err);
	return false;
}

/* Is one on its way that it can have, and that nobody before it in the queue will? */
static bool is_matched(struct create *c)
{
	return c->pool && ++c->pool->matched <= c->pool->starting;
}

/* False: it waits for what it wants to be frozen again, or that failed and it was refused. */
static bool is_loadable(struct create *c)
{
	struct snapshot *instead;
	struct err err;

	if (!c->snapshot || (c->flags & NODE_BOOT))
		return true;
	instead = refreeze_instead(c->snapshot);
	if (instead)
		admission_change(c, instead);
	switch (refreeze_ask(c->snapshot, &err)) {
	case REFREEZE_GO:
		return true;
	case REFREEZE_WAIT:
		c->node->creates.held_up++;
		return false;
	case REFREEZE_REFUSE:
		break;
	}
	refuse(c, &err);
	return false;
}

/* In the order of the queue, for each that no start is under way for. One that wants a copy has it
 * begun for itself and leaves the queue. */
static bool start_waiting(struct node *n, uint64_t max)
{
	n->creates.held_up = 0;
	n->pools.base.matched = 0;
	for (struct pool *p = n->pools.all; p; p = p->next)
		p->matched = 0;
	for (struct create *c = n->creates.first, *next; c && admission_busy(n) < max; c = next) {
		next = c->next;
		if (is_matched(c) || !is_loadable(c))
			continue;
		if (create_is_own(c) ? !begin_copy(n, c) : !begin(n, c->pool, c))
			return false;
	}
	return true;
}

static void fill_pools(struct node *n, uint64_t max)
{
	struct pool *pool;

	while (admission_busy(n) < max && (pool = pools_lacking(n)))
		if (!begin(n, pool, NULL)) {
			pools_failed(n, pool);
			return;
		}
}

static void start_more(struct node *n)
{
	uint64_t max = n->set[SET_STARTS_MAX].number;
	struct creates *q = &n->creates;

	if (!start_waiting(n, max))
		return;
	if (loop_now_ms(n->loop) < q->pool_rests_until_ms) {
		timer_start(&q->turn, CREATE_POOL_REST_MS);
		return;
	}
	fill_pools(n, max);
	/* memory may come back without a word */
	if (admission_busy(n) < max && n->pools.n_ready < pools_wanted(n))
		timer_start(&q->turn, MEMORY_MEASURE_MS);
}

static void turn(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, creates.turn);
	struct err err;

	if (n->base.state == BASE_READY)
		end_outdated(n);
	give_out(n);
	pools_plan(n);
	if (n->base.state == BASE_FAILED) {
		err_set(&err, ERR_UNAVAILABLE, 0, "template %s: %.200s", BASE_ALIAS,
			n->base.why.msg);
		creates_refuse_all(n, &err);
	}
	if (node_links_up(n) && n->base.state == BASE_READY && !n->stopping)
		start_more(n);
}

void creates_soon(struct node *n)
{
	timer_start(&n->creates.turn, 0);
}

void creates_open(struct node *n)
{
	struct creates *q = &n->creates;

	*q = (struct creates){ 0 };
	timer_init(&q->turn, n->loop, turn);
	pools_open(n);
}

void creates_close(struct node *n)
{
	struct creates *q = &n->creates;

	timer_stop(&q->turn);
	while (q->all) { /* those whose sandbox is on its way, too */
		dequeue(q->all);
		create_free(q->all);
	}
	pools_close(n);
}
