/* admission.c - may there be one more? What this host has, what a key may have, what it is made of.
 */
#include "node/admission.h"

#include <errno.h>

#include "node/create_text.h"
#include "node/limits.h"
#include "node/node.h"

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

int creates_room(const struct node *n, struct err *err)
{
	if (admit_one(n, err) < 0)
		return -1;
	return memory_watch_allow(
		&n->memory, 1 + admission_starting(n) + n->n_resuming + n->creates.bound, err);
}

static int admit(const struct create *c, struct err *err)
{
	const struct node *n = c->node;
	size_t waiting = n->creates.n, begun = admission_starting(n);
	size_t pooled = n->table.in_state[SANDBOX_WAITING];

	if (admit_one(n, err) < 0)
		return -1;
	if (waiting >= CREATES_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%zu creates wait already", waiting);
	if (files_room(n->files, 0, err) < 0)
		return -1;
	if (n->base.state == BASE_FAILED)
		return err_set(err, ERR_UNAVAILABLE, 0, "template %s: %.200s", BASE_ALIAS,
			       n->base.why.msg);
	if (pooled > waiting && !c->snapshot)
		return 0; /* it is there, and measured */
	/* those begun are not all there yet, those who wait are not begun */
	return memory_watch_allow(&n->memory,
				  1 + (waiting > begun ? waiting : begun) + n->creates.bound, err);
}

/* What its key and its team may have, of sandboxes and of the queue. It is not counted yet. */
static int allow(struct create *c, const struct node_request *rq, struct err *err)
{
	size_t waiting = creates_waiting(&c->node->creates, c);

	if (limits_allow(c->node, rq->team, rq, err) < 0 ||
	    limits_allow_paused(c->node, rq->team, rq, err) < 0) {
		c->limited = true;
		return -1;
	}
	if (waiting >= CREATES_KEY_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "%zu of your creates wait already", waiting);
	return 0;
}

static int find_template(struct create *c, const struct node_request *rq, struct err *err)
{
	struct snapshot *p;

	if (base_is(c->node, rq->template_id) &&
	    (!rq->template_tag[0] || strcmp(rq->template_tag, SNAPSHOT_TAG) == 0))
		return 0;
	p = snapshots_find(c->node, rq->team, rq->template_id, rq->template_tag, err);
	if (!p)
		return -1;
	c->snapshot = snapshot_hold(p);
	return 0;
}

int admission_create(struct create *c, const struct node_request *rq, struct bytes text,
		     struct err *err)
{
	if (find_template(c, rq, err) < 0)
		return -1;
	memcpy(c->team, rq->team, sizeof(c->team));
	memcpy(c->key_id, rq->key_id, sizeof(c->key_id));
	memcpy(c->token, rq->token, sizeof(c->token));
	if (lease_check(rq->timeout_s, c->node->set[SET_TIMEOUT_MAX_S].number, err) < 0 ||
	    allow(c, rq, err) < 0 || admit(c, err) < 0)
		return -1;
	c->timeout_s = rq->timeout_s;
	c->flags = rq->flags & (NODE_SECURE | NODE_AUTO_PAUSE | NODE_AUTO_RESUME | NODE_NO_MEMORY |
				NODE_BOOT | NODE_PRIVATE | NODE_INGRESS);
	if (create_text_split(text, NODE_TEXT_MAX, &c->env, &c->text, err) < 0 ||
	    network_allow(c->node, c->text, err) < 0)
		return -1;
	return repeats_begin(c->node, c, rq, text, err);
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
	if (allow(c, rq, err) < 0 || admit(c, err) < 0)
		return -1;
	if (of->text && !(c->text = strdup(of->text)))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "a create");
	if (!of->env)
		return 0;
	return json_decode(bytes_str(of->env), NODE_TEXT_MAX, CREATE_TEXT_DEPTH, &c->env, err);
}
