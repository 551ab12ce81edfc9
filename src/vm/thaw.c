/* thaw.c - `cont`, and meanwhile the way to the agent. */
#include "vm/thaw.h"

#include <assert.h>

static void release(struct thaw *t)
{
	t->on_done = NULL;
	agent_dial_cancel(&t->dial);
	agent_wake_cancel(&t->wake);
	explicit_bzero(&t->identity, sizeof(t->identity)); /* what it points to is the caller's */
}

void thaw_cancel(struct thaw *t)
{
	if (!t->on_done)
		return;
	release(t);
	if (t->cont.link)
		machine_close(t->machine);
}

static void finish(struct thaw *t, const struct err *why)
{
	__auto_type on_done = t->on_done;
	struct err err;

	if (why) {
		err = *why;
		err_wrap(&err, "thaw");
	}
	thaw_cancel(t);
	on_done(t, why ? &err : NULL);
}

static void on_awake(struct agent_wake *w, const struct agent_clock *clock, const struct err *err)
{
	(void)clock;
	finish(CONTAINER_OF(w, struct thaw, wake), err);
}

static void on_dialled(struct agent_dial *d, struct stream *s, const struct err *err)
{
	struct thaw *t = CONTAINER_OF(d, struct thaw, dial);
	const struct agent_wake_spec spec = { &t->identity, false, &t->machine->steps };
	struct err mine;

	if (!s)
		finish(t, err);
	else if (agent_wake_start(&t->wake, s, &spec, on_awake, &mine) < 0)
		finish(t, &mine);
}

/* One that an earlier node left was never seen by us to stand still; and one that runs stays so. */
static void on_cont(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct thaw *t = CONTAINER_OF(c, struct thaw, cont);
	struct vm_life *life = &t->machine->life;

	(void)ret;
	if (err) {
		if (t->on_done)
			finish(t, err);
		return;
	}
	if (life->state == VM_STARTING)
		vm_life_enter(life, VM_PAUSED);
	if (life->state == VM_PAUSED)
		vm_life_enter(life, VM_RUNNING);
	steps_add(&t->machine->steps, "cont");
}

int thaw_start(struct thaw *t, const struct thaw_spec *spec, thaw_done_fn *on_done, struct err *err)
{
	struct machine *m = spec->machine;

	assert(spec->id->resume);
	*t = (struct thaw){ .on_done = on_done, .machine = m, .identity = *spec->id };
	t->identity.in_place = true;
	/* the first packet waits in the tap until the guest runs */
	if (agent_dial_start(&t->dial,
			     &(struct agent_dial_spec){ m->loop, spec->socket, spec->agent,
							AGENT_DIAL_UP_MS, THAW_AGENT_MS },
			     on_dialled, err) < 0 ||
	    machine_ask(m, &t->cont, "cont", NULL, on_cont, err) < 0) {
		release(t);
		return err_wrap(err, "thaw");
	}
	return 0;
}
