/* build.c - the first half of a build: make the overlay, boot, wait for the agent; and its end. */
#include "vm/build_inside.h"

#include <assert.h>
#include <errno.h>

#define JOB_ID "overlay"

enum { HEALTH_MS = 10 * 1000 };

struct build *build_of_call(struct qmp_call *c)
{
	return CONTAINER_OF(c, struct build, call);
}

void build_cancel(struct build *b)
{
	if (!b)
		return;
	timer_stop(&b->step);
	timer_stop(&b->deadline);
	timer_stop(&b->settle);
	agent_dial_cancel(&b->dial);
	agent_link_close(&b->agent);
	agent_exec_cancel(&b->exec);
	template_job_cancel(TAKE(b->job));
	if (b->socket >= 0)
		close(take_fd(&b->socket));
	machine_close(b->machine);
	free(b);
}

void build_fail(struct build *b, const struct err *why)
{
	struct build_user *u = b->user;
	struct err err = *why;

	err_wrap(&err, "build: %s", b->step_name);
	build_cancel(b);
	u->ops->on_done(u, NULL, &err);
}

static void on_late(struct build *b)
{
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "not done in time");
	build_fail(b, &err);
}

static void on_step_late(struct timer *t)
{
	on_late(CONTAINER_OF(t, struct build, step));
}

static void on_deadline(struct timer *t)
{
	on_late(CONTAINER_OF(t, struct build, deadline));
}

void build_begin(struct build *b, const char *name, uint64_t ms)
{
	b->step_name = name;
	timer_start(&b->step, ms);
}

void build_reached(struct build *b, const char *name)
{
	timer_stop(&b->step);
	steps_add(&b->machine->steps, name);
}

void build_ask(struct build *b, const char *command, json_t *arguments,
	       void (*on_done)(struct qmp_call *c, const json_t *ret, const struct err *err))
{
	struct err err;

	if (machine_ask(b->machine, &b->call, command, arguments, on_done, &err) < 0)
		build_fail(b, &err);
}

static void build_fail_with(struct build *b, const char *what)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, 0, "%s", what);
	build_fail(b, &err);
}

/* --- booting ------------------------------------------------------------------------------ */

static void on_healthy(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	struct build *b = CONTAINER_OF(l, struct build, agent);

	(void)a;
	if (err) {
		build_fail(b, err);
		return;
	}
	build_reached(b, "healthy");
	build_commands(b);
}

static void on_boot_dialled(struct agent_dial *d, struct stream *s, const struct err *err)
{
	struct build *b = CONTAINER_OF(d, struct build, dial);
	struct err mine;

	if (!s)
		build_fail(b, err);
	else if (agent_link_open(&b->agent, s, &mine) < 0 ||
		 agent_link_health(&b->agent, HEALTH_MS, on_healthy, &mine) < 0)
		build_fail(b, &mine);
}

static void await_agent(struct build *b)
{
	struct err err;

	if (b->machine->life.state != VM_RUNNING || b->socket < 0)
		return;
	if (agent_dial_start(&b->dial, b->machine->loop, take_fd(&b->socket), &b->spec.agent,
			     AGENT_DIAL_BOOT_MS, BUILD_BOOT_MS, on_boot_dialled, &err) < 0)
		build_fail(b, &err);
}

void build_socket(struct build *b, int fd)
{
	assert(b->socket < 0);
	b->socket = fd;
	if (b->commanded)
		build_commands_socket(b);
	else
		await_agent(b);
}

static void on_cont(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = build_of_call(c);

	(void)ret;
	if (err) {
		build_fail(b, err);
		return;
	}
	vm_life_enter(&b->machine->life, VM_RUNNING);
	build_reached(b, "cont");
	build_begin(b, "boot", BUILD_BOOT_MS);
	await_agent(b);
}

static void on_dismissed(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = build_of_call(c);

	(void)ret;
	if (err) {
		build_fail(b, err);
		return;
	}
	build_reached(b, "overlay");
	build_begin(b, "cont", MACHINE_COMMAND_MS);
	build_ask(b, "cont", NULL, on_cont);
}

/* The only job there is must be ours, concluded, and without an error. */
static void on_jobs(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = build_of_call(c);
	struct bytes id = { 0 }, status = { 0 }, why = { 0 };
	const json_t *job = json_array_get(ret, 0);
	struct err mine;

	if (err) {
		build_fail(b, err);
		return;
	}
	if (json_want_string(job, "id", &id, &mine) < 0 ||
	    json_want_string(job, "status", &status, &mine) < 0 ||
	    json_may_string(job, "error", &why, &mine) < 0) {
		build_fail(b, &mine);
	} else if (!bytes_eq(id, BYTES_LIT(JOB_ID)) || !bytes_eq(status, BYTES_LIT("concluded")) ||
		   why.ptr) {
		err_set(&mine, ERR_INTERNAL, 0, "QEMU could not make it: %.*s", (int)why.len,
			(const char *)why.ptr);
		build_fail(b, &mine);
	} else {
		build_ask(b, "job-dismiss", json_pack("{s:s}", "id", JOB_ID), on_dismissed);
	}
}

static void on_creating(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = build_of_call(c);

	(void)ret;
	if (err)
		build_fail(b, err);
	else if (b->job_ended)
		build_ask(b, "query-jobs", NULL, on_jobs);
}

static void on_prelaunch(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = build_of_call(c);
	char status[32] = "?";

	if (err) {
		build_fail(b, err);
		return;
	}
	if (!machine_status(ret, status, sizeof(status)) || strcmp(status, "prelaunch") != 0) {
		build_fail_with(b, "QEMU does not wait to be started");
		return;
	}
	vm_life_enter(&b->machine->life, VM_PAUSED);
	build_begin(b, "overlay", BUILD_OVERLAY_MS);
	build_ask(b, "blockdev-create",
		  json_pack("{s:s, s:{s:s, s:s, s:I}}", "job-id", JOB_ID, "options", "driver",
			    "qcow2", "file", b->spec.overlay_node, "size",
			    (json_int_t)b->spec.disk_bytes),
		  on_creating);
}

static void on_open(struct machine_user *mu)
{
	struct build *b = CONTAINER_OF(mu, struct build, machine_user);
	struct err err;

	if (machine_ask(b->machine, &b->call, "query-status", NULL, on_prelaunch, &err) < 0)
		build_fail(b, &err);
	else
		b->user->ops->want_socket(b->user);
}

static void on_ready(struct machine_user *mu)
{
	(void)mu;
}

static bool is_job_end(const struct qmp_message *event)
{
	struct bytes id = { 0 }, status = { 0 };
	struct err unused;

	return bytes_eq(event->name, BYTES_LIT("JOB_STATUS_CHANGE")) &&
	       json_want_string(event->data, "id", &id, &unused) == 0 &&
	       json_want_string(event->data, "status", &status, &unused) == 0 &&
	       bytes_eq(id, BYTES_LIT(JOB_ID)) && bytes_eq(status, BYTES_LIT("concluded"));
}

static void on_event(struct machine_user *mu, const struct qmp_message *event)
{
	struct build *b = CONTAINER_OF(mu, struct build, machine_user);

	/* An event counts in its own step, and once. */
	if (strcmp(b->step_name, "overlay") != 0 || b->job_ended || !is_job_end(event))
		return;
	b->job_ended = true;
	if (!b->call.link)
		build_ask(b, "query-jobs", NULL, on_jobs);
}

static void on_gone(struct machine_user *mu, const struct err *err)
{
	struct build *b = CONTAINER_OF(mu, struct build, machine_user);

	if (!b->quitting) {
		build_fail(b, err);
		return;
	}
	build_reached(b, "quit");
	b->step_name = "stop the process";
	b->user->ops->want_stop(b->user);
}

int build_start(struct machine *m, struct loop *l, const struct build_spec *spec,
		struct build_user *u, struct build **ret, struct err *err)
{
	static const struct machine_user_ops ops = { on_open, on_ready, on_event, on_gone };
	AUTO(auto_free) struct build *b = calloc(1, sizeof(*b));

	if (!b)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate a build");
	b->user = u;
	b->machine = m;
	b->machine_user.ops = &ops;
	b->spec = *spec;
	b->socket = -1;
	timer_init(&b->step, l, on_step_late);
	timer_init(&b->deadline, l, on_deadline);
	if (machine_connect(m, l, spec->qmp_path, &b->machine_user, err) < 0)
		return err_wrap(err, "build");
	build_begin(b, "start QEMU", MACHINE_DIAL_MS + QMP_LINK_GREETING_MS);
	timer_start(&b->deadline, BUILD_MS);
	*ret = TAKE(b);
	return 0;
}
