/* restore.c - one step after the other, and two of them at once. */
#include "vm/restore.h"

#include <assert.h>

static struct restore *of(struct machine_user *u)
{
	return CONTAINER_OF(u, struct restore, machine_user);
}

static void release(struct restore *r)
{
	r->user = NULL;
	timer_stop(&r->deadline);
	agent_dial_cancel(&r->dial);
	agent_wake_cancel(&r->wake);
	if (r->socket >= 0)
		close(take_fd(&r->socket));
}

void restore_cancel(struct restore *r)
{
	if (!r->user)
		return;
	release(r);
	machine_close(r->machine);
}

void restore_fail(struct restore *r, const struct err *why)
{
	struct restore_user *u = r->user;
	struct err err = *why;

	assert(u);
	err_wrap(&err, "restore");
	restore_cancel(r);
	u->ops->on_done(u, NULL, &err);
}

static void on_deadline(struct timer *t)
{
	struct restore *r = CONTAINER_OF(t, struct restore, deadline);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "not done in %d ms, %s",
		r->spec.boot ? RESTORE_BOOT_MS : RESTORE_MS, vm_state_name(r->machine->life.state));
	restore_fail(r, &err);
}

/* --- the agent ---------------------------------------------------------------------------- */

static void on_awake(struct agent_wake *w, const struct agent_clock *clock, const struct err *err)
{
	struct restore *r = CONTAINER_OF(w, struct restore, wake);
	struct restore_user *u = r->user;

	if (err) {
		restore_fail(r, err);
		return;
	}
	release(r);
	machine_set_user(r->machine, NULL);
	u->ops->on_done(u, clock, NULL);
}

static void on_awaiting(struct agent_wake *w)
{
	struct restore *r = CONTAINER_OF(w, struct restore, wake);

	timer_stop(&r->deadline);
	r->user->ops->on_waiting(r->user);
}

void restore_rehearse(struct restore *r, const struct agent_identity *id)
{
	assert(r->user && !r->spec.identity);
	timer_start(&r->deadline, RESTORE_MS);
	agent_wake_rehearse(&r->wake, id);
}

void restore_identity(struct restore *r, const struct agent_identity *id)
{
	assert(r->user && !r->spec.identity);
	r->spec.identity = id;
	timer_start(&r->deadline, RESTORE_MS);
	agent_wake_tell(&r->wake, id);
}

static void on_dialled(struct agent_dial *d, struct stream *s, const struct err *err)
{
	struct restore *r = CONTAINER_OF(d, struct restore, dial);
	const struct agent_wake_spec spec = { r->spec.identity, r->spec.check_health,
					      &r->machine->steps };
	struct err mine;

	if (!s) {
		restore_fail(r, err);
		return;
	}
	steps_add(&r->machine->steps, "connected");
	if (agent_wake_start(&r->wake, s, &spec, on_awake, &mine) < 0)
		restore_fail(r, &mine);
	else if (!r->spec.identity)
		agent_wake_hold(&r->wake, r->machine->loop, on_awaiting);
}

static void dial_agent(struct restore *r)
{
	bool boot = r->spec.boot;
	struct err err;

	if (!r->may_run || r->socket < 0)
		return;
	if (agent_dial_start(&r->dial,
			     &(struct agent_dial_spec){
				     r->machine->loop, take_fd(&r->socket), &r->spec.agent,
				     boot ? AGENT_DIAL_BOOT_MS : AGENT_DIAL_UP_MS,
				     boot ? RESTORE_BOOT_AGENT_MS : RESTORE_AGENT_MS },
			     on_dialled, &err) < 0)
		restore_fail(r, &err);
}

void restore_socket(struct restore *r, int fd)
{
	assert(r->user && r->socket < 0);
	r->socket = fd;
	steps_add(&r->machine->steps, "socket");
	dial_agent(r);
}

/* --- QEMU --------------------------------------------------------------------------------- */

static void on_cont(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct restore *r = CONTAINER_OF(c, struct restore, cont);

	(void)ret;
	if (err) {
		if (r->user)
			restore_fail(r, err);
		return;
	}
	vm_life_enter(&r->machine->life, VM_RUNNING);
	steps_add(&r->machine->steps, "cont");
}

void restore_go(struct restore *r)
{
	struct err err;

	assert(r->user && r->machine->life.state == VM_PAUSED);
	r->may_run = true;
	if (machine_ask(r->machine, &r->cont, "cont", NULL, on_cont, &err) < 0) {
		restore_fail(r, &err);
		return;
	}
	/* the first packet waits in the tap until the guest runs */
	dial_agent(r);
}

/* Saved state says "running". What QEMU made of it decides, not what we hope. */
static bool may_go(const struct restore *r, const char *status)
{
	return strcmp(status, "paused") == 0 || (r->spec.boot && strcmp(status, "prelaunch") == 0);
}

static void on_status(struct qmp_call *c, const json_t *ret, const struct err *failed)
{
	struct restore *r = CONTAINER_OF(c, struct restore, status);
	char status[32] = "?";
	struct err err;

	if (failed) {
		if (r->user)
			restore_fail(r, failed);
		return;
	}
	if (!machine_status(ret, status, sizeof(status)) || !may_go(r, status)) {
		err_set(&err, ERR_INTERNAL, 0, "QEMU is %s %s", status,
			r->spec.boot ? "before its guest was started"
				     : "after loading, not paused");
		restore_fail(r, &err);
		return;
	}
	vm_life_enter(&r->machine->life, VM_PAUSED);
	steps_add(&r->machine->steps, "paused");
	if (r->spec.hold)
		r->user->ops->on_held(r->user);
	else
		restore_go(r);
}

static void on_loading(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct restore *r = CONTAINER_OF(c, struct restore, incoming);

	(void)ret;
	if (err && r->user)
		restore_fail(r, err);
}

static void on_capable(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct restore *r = CONTAINER_OF(c, struct restore, capabilities);

	(void)ret;
	if (err && r->user)
		restore_fail(r, err);
}

/* Told, not polled, when it is loaded. */
static json_t *want_events(void)
{
	return json_pack("{s:[{s:s, s:b}]}", "capabilities", "capability", "events", "state", 1);
}

static int ask_status(struct restore *r, struct err *err)
{
	return machine_ask(r->machine, &r->status, "query-status", NULL, on_status, err);
}

static int ask_load(struct restore *r, struct err *err)
{
	vm_life_enter(&r->machine->life, VM_LOADING);
	if (machine_ask(r->machine, &r->capabilities, "migrate-set-capabilities", want_events(),
			on_capable, err) < 0)
		return -1;
	return machine_ask(r->machine, &r->incoming, "migrate-incoming",
			   json_pack("{s:s}", "uri", r->spec.state_uri), on_loading, err);
}

void restore_applied(struct restore *r)
{
	struct err err;

	assert(r->user && r->spec.apply && r->machine->life.state == VM_STARTING);
	steps_add(&r->machine->steps, "applied");
	if (ask_load(r, &err) < 0)
		restore_fail(r, &err);
}

static void on_open(struct machine_user *mu)
{
	struct restore *r = of(mu);
	struct err err;
	int rc = 0;

	if (r->spec.boot)
		rc = ask_status(r, &err);
	else if (!r->spec.apply)
		rc = ask_load(r, &err);
	if (rc < 0)
		restore_fail(r, &err);
	else
		r->user->ops->want_socket(r->user);
}

/* It answered its first command: the machine is made, and its memory is mapped. */
static void on_ready(struct machine_user *mu)
{
	struct restore *r = of(mu);

	if (r->spec.apply)
		r->user->ops->want_apply(r->user);
}

static void on_event(struct machine_user *mu, const struct qmp_message *event)
{
	struct restore *r = of(mu);
	struct bytes now = machine_migration(event), why;
	struct err err;

	if (machine_shut_down(event, &why)) {
		err_set(&err, ERR_UNAVAILABLE, 0, "the guest has ended");
		restore_fail(r, &err);
		return;
	}
	if (r->machine->life.state != VM_LOADING || r->status.link)
		return;
	if (bytes_eq(now, BYTES_LIT("failed"))) {
		err_set(&err, ERR_INTERNAL, 0, "QEMU could not load the device state");
		restore_fail(r, &err);
	} else if (bytes_eq(now, BYTES_LIT("completed"))) {
		steps_add(&r->machine->steps, "loaded");
		if (ask_status(r, &err) < 0)
			restore_fail(r, &err);
	}
}

static void on_gone(struct machine_user *mu, const struct err *err)
{
	restore_fail(of(mu), err);
}

int restore_start(struct restore *r, struct machine *m, struct loop *l,
		  const struct restore_spec *spec, struct err *err)
{
	static const struct machine_user_ops ops = { on_open, on_ready, on_event, on_gone };

	assert(!(spec->apply && spec->boot)); /* pages of a state that is not loaded */
	*r = (struct restore){ .user = spec->user,
			       .machine = m,
			       .machine_user = { &ops },
			       .spec = *spec,
			       .socket = -1 };
	if (machine_connect(m, l, spec->qmp_path, &r->machine_user, err) < 0) {
		r->user = NULL;
		return err_wrap(err, "restore");
	}
	timer_init(&r->deadline, l, on_deadline);
	timer_start(&r->deadline, spec->boot ? RESTORE_BOOT_MS : RESTORE_MS);
	return 0;
}
