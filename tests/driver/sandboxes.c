/* sandboxes.c - the sandboxes this driver made: finding them, their monitor, their end. */
#include "tests/driver/driver.h"

#include "base/log.h"

static void on_nothing(struct machine_user *u)
{
	(void)u;
}

static void on_event(struct machine_user *u, const struct qmp_message *event)
{
	(void)u, (void)event;
}

static void on_gone(struct machine_user *u, const struct err *err)
{
	log_info("%s: %s", CONTAINER_OF(u, struct sandbox, machine_user)->id, err->msg);
}

struct sandbox *sandbox_add(struct driver *d, const char *id)
{
	static const struct machine_user_ops ops = { on_nothing, on_nothing, on_event, on_gone };
	struct sandbox *s = calloc(1, sizeof(*s));

	if (!s)
		abort();
	s->d = d;
	snprintf(s->id, sizeof(s->id), "%s", id);
	s->slot = WARDEN_NO_SLOT;
	s->overlay = -1;
	s->machine_user.ops = &ops;
	s->next = d->sandboxes;
	d->sandboxes = s;
	return s;
}

struct sandbox *sandbox_find(struct driver *d, const char *id)
{
	for (struct sandbox *s = d->sandboxes; s; s = s->next)
		if (strcmp(s->id, id) == 0)
			return s;
	return NULL;
}

void sandbox_drop(struct sandbox *s)
{
	struct sandbox **at = &s->d->sandboxes;

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	restore_cancel(&s->restore);
	machine_close(&s->machine);
	agent_identity_done(&s->identity);
	auto_close(&s->overlay);
	free(s);
}

void sandboxes_drop_all(struct driver *d)
{
	while (d->sandboxes)
		sandbox_drop(d->sandboxes);
}

/* --- status ------------------------------------------------------------------------------- */

struct status_op {
	struct qmp_call call;
	struct op *op;
	enum vm_state state;
};

static void on_status(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct status_op *v = CONTAINER_OF(c, struct status_op, call);
	char status[32];
	struct err mine;

	if (err) {
		op_fail(v->op, err);
	} else if (!machine_status(ret, status, sizeof(status))) {
		err_set(&mine, ERR_INTERNAL, 0, "QEMU gives no status");
		op_fail(v->op, &mine);
	} else {
		op_ok(v->op,
		      json_pack("{s:s, s:s}", "status", status, "state", vm_state_name(v->state)));
	}
	free(v);
}

static struct sandbox *sandbox_of(struct op *o, struct err *err)
{
	char id[WARDEN_ID_MAX + 1];
	struct sandbox *s;

	if (id_of(o->args, "sandbox", id, err) < 0)
		return NULL;
	s = sandbox_find(o->d, id);
	if (!s)
		err_set(err, ERR_NOT_FOUND, 0, "sandbox %s is not of this driver", id);
	return s;
}

void run_status(struct op *o)
{
	struct status_op *v = NULL;
	struct err err;
	struct sandbox *s = sandbox_of(o, &err);

	if (!s) {
		op_fail(o, &err);
		return;
	}
	v = calloc(1, sizeof(*v));
	if (!v)
		abort();
	v->op = o;
	v->state = s->machine.life.state;
	if (machine_ask(&s->machine, &v->call, "query-status", NULL, on_status, &err) < 0) {
		free(v);
		op_fail(o, &err);
	}
}

/* --- stop --------------------------------------------------------------------------------- */

struct stop_op {
	struct link_call call;
	struct op *op;
};

static void on_stopped(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct stop_op *v = CONTAINER_OF(c, struct stop_op, call);

	if (err)
		op_fail(v->op, err);
	else
		op_ok(v->op, NULL);
	free(v);
}

/* Of any sandbox, also of one that another driver made. */
void run_stop(struct op *o)
{
	struct warden_request rq = { .verb = WARDEN_STOP };
	struct stop_op *v = NULL;
	struct sandbox *s;
	struct err err;

	if (id_of(o->args, "sandbox", rq.id, &err) < 0) {
		op_fail(o, &err);
		return;
	}
	s = sandbox_find(o->d, rq.id);
	if (s && s->restore.user && !s->restore.spec.hold) {
		err_set(&err, ERR_INVALID, 0, "%s is still being created", rq.id);
		op_fail(o, &err);
		return;
	}
	if (s)
		sandbox_drop(s);
	v = calloc(1, sizeof(*v));
	if (!v)
		abort();
	v->op = o;
	if (driver_ask(o->d, &v->call, &rq, NULL, 0, on_stopped, &err) < 0) {
		free(v);
		op_fail(o, &err);
	}
}
