/* once.c - tokens of requests that are under way; rows know the tokens of those that are done. */
#include "node/life/once.h"

#include <errno.h>

#include "base/list.h"
#include "base/clock.h"
#include "base/hash.h"
#include "node/life/end.h"
#include "node/life/sandbox_row.h"
#include "node/node.h"

struct once_wait { /* one that was sent again */
	struct once *once;
	struct door_asked *asked;
	struct door_watch watch;
	struct once_wait *next;
};

struct once {
	struct node *node;
	char token[NODE_ID_MAX + 1];
	uint64_t deadline_ns;
	bool named; /* what it makes may be asked for again by its name */
	bool given_up;
	bool told;                /* whoever asked was */
	bool done;                /* what it made is there, and nobody was told */
	struct door_asked *asked; /* NULL: done */
	struct door_watch watch;
	struct once_wait *waits;
	size_t n_waits;
	struct timer timer; /* when it is for nobody any more */
	struct once *next, **prev;
};

/* --- the table ---------------------------------------------------------------------------- */

static struct once **bucket_of(struct node *n, const char *token)
{
	return &n->onces.buckets[hash_text(HASH_START, token) % ONCE_BUCKETS];
}

static struct once *find(struct node *n, const char *token)
{
	struct once *o = *bucket_of(n, token);

	while (o && strcmp(o->token, token) != 0)
		o = o->next;
	return o;
}

static struct once_wait *take_wait(struct once *o)
{
	struct once_wait *w = o->waits;

	if (w)
		o->waits = w->next;
	return w;
}

static void once_free(struct once *o)
{
	struct once_wait *w;

	timer_stop(&o->timer);
	while ((w = take_wait(o)))
		free(w);
	list_remove(o);
	free(o);
}

void once_open(struct node *n)
{
	n->onces.lost_ms = ONCE_LOST_MS;
}

void once_close(struct node *n)
{
	for (size_t i = 0; i < ONCE_BUCKETS; i++)
		while (n->onces.buckets[i])
			once_free(n->onces.buckets[i]);
}

/* --- what nobody knows of ----------------------------------------------------------------- */

static bool made_by(const struct sandbox *s, const char *token)
{
	return s->team && s->state != SANDBOX_ENDING && strcmp(s->token, token) == 0;
}

static void undo(struct node *n, const char *token)
{
	list_each(struct sandbox, s, n->table.all)
		if (made_by(s, token) && !s->repeat)
			sandbox_end(s, NODE_KILLED, "nobody was told of it");
	snapshots_undo(n, token);
}

static void give_up(struct once *o)
{
	timer_stop(&o->timer);
	o->given_up = true;
	door_give_up(o->asked);
	for (struct once_wait *w = o->waits; w; w = w->next)
		door_give_up(w->asked);
	creates_drop_unwanted(o->node); /* may end it */
}

/* --- who waits ---------------------------------------------------------------------------- */

static bool anybody_here(const struct once *o)
{
	bool here = door_is_here(o->asked);

	for (const struct once_wait *w = o->waits; w && !here; w = w->next)
		here = door_is_here(w->asked);
	return here;
}

static void be_patient(struct once *o)
{
	uint64_t now = clock_boot_ns(), left = o->node->onces.lost_ms;
	bool waits = o->named || anybody_here(o);

	if (o->deadline_ns && (waits || o->deadline_ns < now + left * NSEC_PER_MSEC))
		left = o->deadline_ns > now ? (o->deadline_ns - now) / NSEC_PER_MSEC + 1 : 0;
	if (o->given_up || (waits && !o->deadline_ns))
		timer_stop(&o->timer);
	else
		timer_start(&o->timer, left);
}

static void on_time(struct timer *t)
{
	struct once *o = CONTAINER_OF(t, struct once, timer);

	if (!o->done && (o->named || anybody_here(o)) && clock_boot_ns() < o->deadline_ns) {
		be_patient(o); /* the loop's clock was behind when it was started */
		return;
	}
	if (!o->done) {
		give_up(o);
		return;
	}
	undo(o->node, o->token);
	once_free(o);
}

static void on_left(struct door_watch *w)
{
	be_patient(CONTAINER_OF(w, struct once, watch));
}

static void on_again_left(struct door_watch *w)
{
	be_patient(CONTAINER_OF(w, struct once_wait, watch)->once);
}

static void on_again_answered(struct door_watch *w, const struct node_reply *r, struct bytes after,
			      bool told)
{
	struct once_wait *wait = CONTAINER_OF(w, struct once_wait, watch);

	(void)r, (void)after;
	wait->once->told |= told;
	free(wait);
}

/* Nothing is ended from here: whoever answers is not finished with it. */
static void on_answered(struct door_watch *w, const struct node_reply *r, struct bytes after,
			bool told)
{
	struct once *o = CONTAINER_OF(w, struct once, watch);
	struct once_wait *wait;

	o->told = told;
	while ((wait = take_wait(o)))
		door_answer(wait->asked, r, after, NULL, 0);
	if (r->code != ERR_NONE || o->named || (o->told && !o->given_up)) {
		once_free(o);
		return;
	}
	o->done = true;
	o->asked = NULL;
	timer_start(&o->timer, o->given_up ? 0 : o->node->onces.lost_ms);
}

static void wait_for(struct once *o, struct door_asked *a)
{
	static const struct door_watch_ops ops = { on_again_left, on_again_answered };
	struct once_wait *w = o->n_waits < ONCE_WAITS_MAX ? calloc(1, sizeof(*w)) : NULL;
	struct err err;

	if (!w) {
		err_set(&err, ERR_EXHAUSTED, 0, "the same request was sent %zu times",
			o->n_waits + 1);
		door_refuse(a, &err);
		return;
	}
	*w = (struct once_wait){ o, a, { &ops }, o->waits };
	o->waits = w;
	o->n_waits++;
	o->given_up = false; /* somebody does wait */
	door_set_watch(a, &w->watch);
	be_patient(o);
}

/* --- done before -------------------------------------------------------------------------- */

static bool find_created(struct node *n, struct door_asked *a, const struct node_request *rq)
{
	const struct sandbox *s = n->table.all;

	while (s && !made_by(s, rq->token))
		s = s->next;
	if (s)
		door_answer(a, &(struct node_reply){ .sandbox = sandbox_told(s) },
			    (struct bytes){ 0 }, NULL, 0);
	return s;
}

/* A node that died may have left some of them: then nobody was told of any. */
static bool find_forked(struct node *n, struct door_asked *a, const struct node_request *rq)
{
	AUTO(auto_free) struct node_forked *all = calloc(rq->count, sizeof(*all));
	const struct node_reply r = { .count = rq->count };
	size_t found = 0;

	for (const struct sandbox *s = n->table.all; all && s && found < rq->count; s = s->next)
		if (made_by(s, rq->token))
			all[found++].sandbox = sandbox_told(s);
	if (found == rq->count)
		door_answer(a, &r, (struct bytes){ (const uint8_t *)all, found * sizeof(*all) },
			    NULL, 0);
	else
		undo(n, rq->token);
	if (all)
		explicit_bzero(all, rq->count * sizeof(*all));
	return found == rq->count;
}

static bool find_done(struct node *n, struct door_asked *a, const struct node_request *rq)
{
	struct snapshot *p;

	if (rq->verb == NODE_CREATE)
		return find_created(n, a, rq);
	if (rq->verb == NODE_FORK)
		return find_forked(n, a, rq);
	p = snapshots_by_token(n, rq->token);
	if (p)
		snapshot_answer(p, a);
	return p;
}

/* --- for others --------------------------------------------------------------------------- */

static bool is_once(const struct node_request *rq)
{
	return rq->token[0] && (node_verb_needs(rq->verb) & NODE_DONE_ONCE);
}

static struct once *make(struct node *n, struct door_asked *a, const struct node_request *rq)
{
	static const struct door_watch_ops ops = { on_left, on_answered };
	struct once **bucket = bucket_of(n, rq->token);
	struct once *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	*o = (struct once){ .node = n,
			    .deadline_ns = rq->deadline_ns,
			    .named = rq->verb == NODE_SNAPSHOT ? rq->template_id[0]
							       : rq->idempotency[0],
			    .asked = a,
			    .watch = { &ops } };
	memcpy(o->token, rq->token, sizeof(o->token));
	list_add(bucket, o);
	timer_init(&o->timer, n->loop, on_time);
	door_set_watch(a, &o->watch);
	be_patient(o);
	return o;
}

bool once_take(struct node *n, struct door_asked *a, const struct node_request *rq)
{
	struct once *o = is_once(rq) ? find(n, rq->token) : NULL;
	struct err err;

	if (!is_once(rq))
		return false;
	if (o && !o->done) {
		wait_for(o, a);
		return true;
	}
	if (o)
		once_free(o);
	if ((o || (rq->flags & NODE_AGAIN)) && find_done(n, a, rq))
		return true;
	if (make(n, a, rq))
		return false;
	err_set(&err, ERR_EXHAUSTED, ENOMEM, "a request");
	door_refuse(a, &err);
	return true;
}

bool once_wanted(struct door_asked *a, const struct node_request *rq)
{
	struct err err;

	if (door_wanted(a) && (!rq->deadline_ns || clock_boot_ns() < rq->deadline_ns))
		return true;
	err_set(&err, ERR_TIMEOUT, 0, "nobody waits for it any more: it was not begun");
	door_refuse(a, &err);
	return false;
}

void once_give_up_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
		      struct bytes text)
{
	struct once *o = find(n, rq->token);

	(void)text;
	if (!o || o->done)
		undo(n, rq->token);
	if (o && o->done)
		once_free(o);
	else if (o && !o->named)
		give_up(o);
	door_answer(a, &(struct node_reply){ 0 }, (struct bytes){ 0 }, NULL, 0);
}
