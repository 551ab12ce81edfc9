/* creates.c - admission, the queue, and who gets which sandbox. */
#include "node/creates.h"

#include <assert.h>
#include <errno.h>

#include "base/log.h"
#include "node/create_text.h"
#include "node/limits.h"
#include "node/node.h"

static void turn(struct timer *t);

/* --- one create --------------------------------------------------------------------------- */

static void create_free(struct create *c)
{
	timer_stop(&c->patience);
	if (c->all_prev)
		*c->all_prev = c->all_next;
	if (c->all_next)
		c->all_next->all_prev = c->all_prev;
	json_decref(c->env);
	free(c->text);
	free(c);
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
	repeats_failed(c, why);
	memcpy(r.msg, why->msg, sizeof(r.msg));
	door_answer(c->asked, &r, (struct bytes){ 0 }, NULL, 0);
	create_free(c);
}

void creates_refuse_all(struct node *n, const struct err *why)
{
	while (n->creates.first)
		refuse(n->creates.first, why);
}

/* --- patience ----------------------------------------------------------------------------- */

/* Since when the create waits for a daemon that is gone, in ms of the loop; 0: for none. */
static uint64_t gone_since(const struct create *c)
{
	const struct node *n = c->node;
	uint64_t since = 0;

	if (!n->warden.up)
		since = n->warden.down_since_ms;
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
		err_set(&err, ERR_UNAVAILABLE, 0, "%s is not running on this host",
			c->node->warden.up ? "egress" : "warden");
		refuse(c, &err);
	} else if (now - c->since_ms >= CREATE_WAIT_MS) {
		err_set(&err, ERR_TIMEOUT, 0, "no sandbox in %d seconds", CREATE_WAIT_MS / 1000);
		refuse(c, &err);
	} else {
		be_patient(c);
	}
}

/* --- admission ---------------------------------------------------------------------------- */

/* On their way from SLOT to RESTORING, as creates are, and nobody waits for them in the queue. */
static size_t resuming(const struct node *n)
{
	return n->n_resuming;
}

/* Sandboxes that are somebody's and have a VM, or are promised to somebody. */
static size_t owned(const struct node *n)
{
	const size_t *in = n->table.in_state;

	return in[SANDBOX_RUNNING] + in[SANDBOX_PAUSING] + in[SANDBOX_WAKING] + resuming(n) +
	       n->creates.claimed + n->creates.n;
}

static size_t starting(const struct node *n)
{
	const size_t *in = n->table.in_state;

	return in[SANDBOX_NOTED] + in[SANDBOX_SLOT] + in[SANDBOX_STARTING] + in[SANDBOX_RESTORING] -
	       resuming(n);
}

/* What keeps this host's processors busy: claims too, and they go first. */
static size_t busy(const struct node *n)
{
	return starting(n) + n->creates.claimed + n->resumes.n;
}

static int admit_one(const struct node *n, struct err *err)
{
	if (n->stopping)
		return err_set(err, ERR_UNAVAILABLE, 0, "node is being stopped");
	if (owned(n) >= n->set[SET_SANDBOXES_MAX].number)
		return err_set(err, ERR_EXHAUSTED, 0, "this host holds %zu sandboxes, as it may",
			       owned(n));
	return 0;
}

int creates_room(const struct node *n, struct err *err)
{
	if (admit_one(n, err) < 0)
		return -1;
	return memory_watch_allow(&n->memory, 1 + starting(n) + resuming(n), err);
}

static int admit(const struct node *n, struct err *err)
{
	size_t waiting = n->creates.n, begun = starting(n);
	size_t pooled = n->table.in_state[SANDBOX_WAITING];

	if (admit_one(n, err) < 0)
		return -1;
	if (waiting >= CREATES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%zu creates wait already", waiting);
	if (n->base.state == BASE_FAILED)
		return err_set(err, ERR_UNAVAILABLE, 0, "template %s: %.200s", BASE_ALIAS,
			       n->base.why.msg);
	if (pooled > waiting)
		return 0; /* it is there, and measured */
	/* those begun are not all there yet, those who wait are not begun */
	return memory_watch_allow(&n->memory, 1 + (waiting > begun ? waiting : begun), err);
}

/* What its key may have, of sandboxes and of the queue. It is not counted yet. */
static int allow(struct create *c, const struct node_request *rq, struct err *err)
{
	size_t waiting = creates_waiting(&c->node->creates, c);

	if (limits_allow(c->node, rq->team, rq->key_id, &rq->limits, err) < 0) {
		c->limited = true;
		return -1;
	}
	if (waiting >= CREATES_KEY_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%zu of your creates wait already", waiting);
	return 0;
}

static int accept_create(struct create *c, const struct node_request *rq, struct bytes text,
			 struct err *err)
{
	if (!base_is(c->node, rq->template_id))
		return err_set(err, ERR_NOT_FOUND, 0, "template '%s' not found", rq->template_id);
	memcpy(c->team, rq->team, sizeof(c->team));
	memcpy(c->key_id, rq->key_id, sizeof(c->key_id));
	if (lease_check(rq->timeout_s, c->node->set[SET_TIMEOUT_MAX_S].number, err) < 0 ||
	    allow(c, rq, err) < 0 || admit(c->node, err) < 0)
		return -1;
	c->timeout_s = rq->timeout_s;
	c->flags = rq->flags & (NODE_SECURE | NODE_AUTO_PAUSE | NODE_AUTO_RESUME | NODE_NO_MEMORY);
	if (create_text_split(text, NODE_TEXT_MAX, &c->env, &c->text, err) < 0)
		return -1;
	return repeats_begin(c->node, c, rq, text, err);
}

static void link_all(struct create *c)
{
	struct creates *q = &c->node->creates;

	c->all_next = q->all;
	c->all_prev = &q->all;
	if (c->all_next)
		c->all_next->all_prev = &c->all_next;
	q->all = c;
}

void creates_ask(struct node *n, struct door_asked *asked, const struct node_request *rq,
		 struct bytes text)
{
	struct create *c;
	struct err err;

	if (repeats_take(n, asked, rq, text))
		return;
	c = calloc(1, sizeof(*c));
	if (!c) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "a create");
		door_refuse(asked, &err);
		return;
	}
	c->node = n;
	c->asked = asked;
	c->since_ms = loop_now_ms(n->loop);
	timer_init(&c->patience, n->loop, on_impatient);
	if (accept_create(c, rq, text, &err) < 0) {
		refuse(c, &err);
		return;
	}
	link_all(c);
	enqueue(c, false);
	be_patient(c);
	creates_soon(n);
}

/* --- what sandboxes report ---------------------------------------------------------------- */

void creates_ready(struct sandbox *s)
{
	struct creates *q = &s->node->creates;

	s->pool_next = NULL;
	*q->ready_last = s;
	q->ready_last = &s->pool_next;
	creates_soon(s->node);
}

void creates_unready(struct sandbox *s)
{
	struct creates *q = &s->node->creates;
	struct sandbox **at = &q->ready;

	while (*at != s)
		at = &(*at)->pool_next;
	*at = s->pool_next;
	if (!*at)
		q->ready_last = at;
}

static void blame(struct create *c, const struct err *why)
{
	if (++c->tries >= CREATE_TRIES_MAX)
		refuse(c, why);
}

void creates_failed(struct sandbox *s, const struct err *why)
{
	struct node *n = s->node;
	struct create *c = TAKE(s->create);

	if (c) {
		n->creates.claimed--;
		enqueue(c, true);
		be_patient(c);
	} else if (s->state < SANDBOX_WAITING) {
		c = n->creates.first;
	}
	if (c && n->warden.up)
		blame(c, why);
	else if (!c)
		n->creates.pool_rests_until_ms = loop_now_ms(n->loop) + CREATE_POOL_REST_MS;
	creates_soon(n);
}

void creates_done(struct sandbox *s)
{
	const struct node_reply r = { .sandbox = s->info };
	struct create *c = TAKE(s->create);

	s->node->creates.claimed--;
	repeats_done(c, s);
	door_answer(c->asked, &r, (struct bytes){ 0 }, NULL, 0);
	create_free(c);
	creates_soon(s->node);
}

/* --- the turn ----------------------------------------------------------------------------- */

static void give_out(struct node *n)
{
	struct creates *q = &n->creates;

	while (q->first && q->ready) {
		struct create *c = q->first;
		struct sandbox *s = q->ready;

		creates_unready(s);
		creates_take(q, c);
		q->claimed++;
		sandbox_claim(s, c);
	}
}

/* Whoever it was begun for has another, or left. */
static void end_surplus(struct node *n)
{
	struct sandbox *next;

	if (n->creates.n > 0)
		return;
	for (struct sandbox *s = n->creates.ready; s; s = next) {
		next = s->pool_next;
		if (n->table.in_state[SANDBOX_WAITING] > n->set[SET_POOL].number)
			sandbox_end(s, NODE_EVICTED, "nobody needs it");
	}
}

static void end_outdated(struct node *n)
{
	struct sandbox *next;

	for (struct sandbox *s = n->creates.ready; s; s = next) {
		next = s->pool_next;
		if (strcmp(s->info.template_id, n->base.id) != 0)
			sandbox_end(s, NODE_EVICTED, "its template was replaced");
	}
}

static bool begin(struct node *n, bool for_pool)
{
	struct err err;

	if (sandbox_begin(n, for_pool, &err))
		return true;
	log_error("begin a sandbox: %s", err.msg);
	if (n->creates.first)
		blame(n->creates.first, &err);
	return false;
}

static bool pool_lacks(struct node *n)
{
	size_t pooled = n->table.in_state[SANDBOX_WAITING] + starting(n);
	struct err unused;

	/* a claim under way is somebody's waiting time: what is only for later waits, too */
	if (n->creates.n > 0 || n->creates.claimed > 0 || n->stopping ||
	    pooled >= n->set[SET_POOL].number ||
	    owned(n) + pooled >= n->set[SET_SANDBOXES_MAX].number)
		return false;
	return memory_watch_allow(&n->memory, 1 + starting(n), &unused) == 0;
}

static void start_more(struct node *n)
{
	uint64_t max = n->set[SET_STARTS_MAX].number;
	struct creates *q = &n->creates;

	while (busy(n) < max && starting(n) < q->n)
		if (!begin(n, false))
			return;
	if (loop_now_ms(n->loop) < q->pool_rests_until_ms) {
		timer_start(&q->turn, CREATE_POOL_REST_MS);
		return;
	}
	while (busy(n) < max && pool_lacks(n))
		if (!begin(n, true))
			return;
	/* memory may come back without a word */
	if (busy(n) < max && n->table.in_state[SANDBOX_WAITING] < n->set[SET_POOL].number)
		timer_start(&q->turn, MEMORY_MEASURE_MS);
}

static void turn(struct timer *t)
{
	struct node *n = CONTAINER_OF(t, struct node, creates.turn);
	struct err err;

	if (n->base.state == BASE_READY)
		end_outdated(n);
	give_out(n);
	end_surplus(n);
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
	q->ready_last = &q->ready;
	timer_init(&q->turn, n->loop, turn);
}

void creates_close(struct node *n)
{
	struct creates *q = &n->creates;

	timer_stop(&q->turn);
	while (q->all) { /* those whose sandbox is on its way, too */
		dequeue(q->all);
		create_free(q->all);
	}
}
