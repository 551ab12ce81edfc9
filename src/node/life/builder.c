/* builder.c - a sandbox of node's own: begun, reached, copied, ended. */
/* #syscalls: close */
#include "node/life/builder.h"

#include <assert.h>

#include "node/life/end.h"
#include "node/node.h"

/* --- its life ----------------------------------------------------------------------------- */

int builder_begin(struct builder *b, struct node *n, const struct builder_spec *spec,
		  const struct builder_ops *ops, struct err *err)
{
	assert(!b->node);
	assert(spec->boot || (!spec->vcpus && !spec->memory_mib));
	assert(!spec->vcpus == !spec->memory_mib);
	*b = (struct builder){ .ops = ops };
	b->create = creates_build(n, b, spec, err);
	if (!b->create)
		return -1;
	b->node = n;
	return 0;
}

static void forget(struct builder *b)
{
	b->node = NULL;
	b->create = NULL;
	b->sandbox = NULL;
}

void builder_end(struct builder *b)
{
	struct create *c = b->create;
	struct sandbox *s = b->sandbox;

	forget(b);
	if (c)
		creates_give_up(c);
	if (!s)
		return;
	s->builder = NULL;
	sandbox_end(s, NODE_KILLED, "what was built in it is done");
}

const char *builder_id(const struct builder *b)
{
	return b->sandbox ? b->sandbox->info.id : "";
}

void builder_runs(struct builder *b, struct sandbox *s)
{
	b->create = NULL;
	b->sandbox = s;
	s->builder = b;
	b->ops->on_running(b);
}

static void ended(struct builder *b, const struct err *why)
{
	forget(b);
	b->ops->on_ended(b, why);
}

void builder_refused(struct builder *b, const struct node_reply *r)
{
	struct err err;

	err_set(&err, (enum err_code)r->code, 0, "%s", r->msg);
	ended(b, &err);
}

void builder_lost(struct builder *b, const char *why)
{
	struct err err;

	err_set(&err, ERR_UNAVAILABLE, 0, "%s", why);
	ended(b, &err);
}

int builder_take(struct builder *b, const struct taking_spec *spec, struct taking_user *u,
		 struct err *err)
{
	assert(b->sandbox);
	if (b->sandbox->state != SANDBOX_RUNNING)
		return err_set(err, ERR_UNAVAILABLE, 0, "it is being copied already");
	return taking_begin(b->sandbox, spec, u, err);
}

/* --- reaching its agent ------------------------------------------------------------------- */

static void finish(struct builder_dial *d, struct stream *s, const struct err *err)
{
	builder_dial_done_fn *on_done = TAKE(d->on_done);

	on_done(d, s, err);
}

static void on_dialled(struct agent_dial *a, struct stream *s, const struct err *err)
{
	finish(CONTAINER_OF(a, struct builder_dial, dial), s, err);
}

static void on_sockets(struct guest_sockets *g, int *fds, const struct err *failed)
{
	struct builder_dial *d = CONTAINER_OF(g, struct builder_dial, sockets);
	struct err err;

	if (failed) {
		finish(d, NULL, failed);
		return;
	}
	if (agent_dial_start(&d->dial,
			     &(struct agent_dial_spec){ d->node->loop, take_fd(&fds[0]),
							&d->node->agent, AGENT_DIAL_UP_MS,
							BUILDER_DIAL_MS },
			     on_dialled, &err) < 0)
		finish(d, NULL, &err);
}

void builder_dial(struct builder_dial *d, const struct builder *b, builder_dial_done_fn *on_done)
{
	assert(b->sandbox && !d->on_done);
	*d = (struct builder_dial){ .on_done = on_done, .node = b->node };
	guest_sockets_ask(&d->sockets, &d->node->warden, b->sandbox->info.id, 1, BUILDER_DIAL_MS,
			  on_sockets);
}

void builder_dial_cancel(struct builder_dial *d)
{
	if (!TAKE(d->on_done))
		return;
	guest_sockets_cancel(&d->sockets);
	agent_dial_cancel(&d->dial);
}
