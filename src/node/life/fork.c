/* fork.c - a snapshot, then creates; answered when the last of them is. */
#include "node/life/fork.h"

#include <errno.h>

#include "base/clock.h"
#include "base/list.h"
#include "node/network/network_secrets.h"
#include "node/node.h"
#include "node/life/limits.h"
#include "node/life/requests_paused.h"
#include "node/life/snapshot_take.h"
#include "node/life/step.h"
#include "node/life/deferred.h"

struct fork {
	struct node *node;
	struct door_asked *asked;
	struct taking_user taking;
	struct node_request request;
	uint32_t flags;
	char *text, *env;        /* of the source */
	uint64_t since_ns;       /* when it was asked for */
	size_t left;             /* creates without an answer */
	struct node_forked *all; /* request.count of them */
	struct fork *next, **prev;
};

static void fork_free(struct fork *f)
{
	list_remove(f);
	free(f->text);
	free(f->env);
	if (f->all)
		explicit_bzero(f->all, f->request.count * sizeof(*f->all));
	free(f->all);
	free(f);
}

void forks_close(struct node *n)
{
	while (n->forks)
		fork_free(n->forks);
}

void forks_change_secret(struct node *n, const struct secret_change *change)
{
	for (struct fork *f = n->forks; f; f = f->next)
		if (strcmp(f->request.team, change->team) == 0)
			(void)secret_change_text(change, &f->text);
}

static void finish(struct fork *f)
{
	const struct node_reply r = { .count = f->request.count };

	figures_took(&f->node->figures.fork, f->since_ns);
	door_answer(f->asked, &r,
		    (struct bytes){ (const uint8_t *)f->all, f->request.count * sizeof(*f->all) },
		    NULL, 0);
	fork_free(f);
}

struct door_asked *fork_asked(const struct fork *f)
{
	return f->asked;
}

void fork_answer(struct fork *f, size_t at, const struct node_reply *r)
{
	struct node_forked *to = &f->all[at];

	to->code = r->code;
	to->sandbox = r->sandbox;
	memcpy(to->msg, r->msg, sizeof(to->msg));
	step("fork.child");
	if (--f->left == 0)
		finish(f);
}

static void on_taken(struct taking_user *u, struct snapshot *p, const struct err *failed)
{
	struct fork *f = CONTAINER_OF(u, struct fork, taking);
	size_t count = f->request.count;
	struct err err;

	if (p && !door_wanted(f->asked)) { /* then none is begun */
		snapshot_release(snapshot_hold(p));
		err_set(&err, ERR_TIMEOUT, 0, "no copies while somebody waited for them");
		failed = &err;
		p = NULL;
	}
	if (!p) {
		if (f->node->door)
			door_refuse(f->asked, failed);
		fork_free(f);
		return;
	}
	step("fork.snapshot");
	snapshot_hold(p); /* until every create has its own hold */
	f->left = count + 1;
	for (size_t i = 0; i < count; i++)
		creates_fork(f->node, &(struct create_copy){ .fork = f,
							     .at = i,
							     .snapshot = p,
							     .request = &f->request,
							     .flags = f->flags,
							     .text = f->text,
							     .env = f->env });
	snapshot_release(p);
	if (--f->left == 0)
		finish(f);
}

static char *copy_of(const char *text, bool *ret_failed)
{
	char *copy = text ? strdup(text) : NULL;

	*ret_failed |= text && !copy;
	return copy;
}

static struct fork *make(struct sandbox *s, struct door_asked *a, const struct node_request *rq)
{
	struct fork *f = calloc(1, sizeof(*f));
	bool failed = false;

	if (!f)
		return NULL;
	*f = (struct fork){ .node = s->node,
			    .asked = a,
			    .taking = { on_taken },
			    .request = *rq,
			    .since_ns = clock_mono_ns(),
			    .flags = s->info.flags };
	memcpy(f->request.team, s->info.team, sizeof(f->request.team));
	list_add(&s->node->forks, f);
	f->text = copy_of(s->text, &failed);
	f->env = copy_of(s->env, &failed);
	f->all = calloc(rq->count, sizeof(*f->all));
	if (!f->all || failed) {
		fork_free(f);
		return NULL;
	}
	return f;
}

/* Not one copy more: then the sandbox is not stopped for them. */
static int allow_one(const struct sandbox *s, const struct node_request *rq, struct err *err)
{
	const struct limits_sizes more = { s->info.vcpus, s->info.memory_mib, s->info.disk_mib };

	if (limits_allow(s->node, s->info.team, rq, more, err) < 0)
		return -1;
	return limits_allow_paused(s->node, s->info.team, rq, err);
}

/* As each copy would be, one by one. */
static void refuse_all(struct fork *f, const struct err *why)
{
	struct node_reply r = { .code = why->code };

	snprintf(r.msg, sizeof(r.msg), "%s", why->msg);
	f->left = f->request.count;
	f->node->figures.limited += f->left;
	for (size_t i = 0, count = f->left; i < count; i++)
		fork_answer(f, i, &r); /* the last one frees it */
}

static void begin(struct sandbox *s, struct door_asked *a, const struct node_request *rq)
{
	struct fork *f = make(s, a, rq);
	struct err err;

	if (f && allow_one(s, rq, &err) < 0) {
		refuse_all(f, &err);
		return;
	}
	err_set(&err, ERR_EXHAUSTED, ENOMEM, "a fork");
	if (f && taking_begin(s, &(struct taking_spec){ 0 }, &f->taking, &err) == 0)
		return;
	if (f)
		fork_free(f);
	door_refuse(a, &err);
}

void fork_ask(struct node *n, struct door_asked *a, const struct node_request *rq,
	      struct bytes text)
{
	struct err err;
	struct sandbox *s = requests_to_copy(n, rq, &err);

	(void)text;
	if (s && lease_check(rq->timeout_s, n->set[SET_TIMEOUT_MAX_S].number, &err) < 0)
		s = NULL;
	if (!s)
		ended_refuse(n, a, rq, &err);
	else if (requests_copies_now(s, rq))
		begin(s, a, rq);
	else
		deferred_add(s, a, rq);
}
