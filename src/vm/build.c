/* build.c - boot, make ready, save.
 *
 * Each step has a deadline of its own: `step` runs while one is under way and names it.
 */
#include "vm/build.h"

#include <assert.h>
#include <errno.h>

#define JOB_ID "overlay"

enum { BUILD_SOCKETS = 2, HEALTH_MS = 10 * 1000 };

struct build {
	struct build_user *user;
	struct machine *machine;
	struct machine_user machine_user;
	struct build_spec spec;
	const char *step_name; /* a literal */
	struct timer step, deadline, settle;
	struct qmp_call call;
	bool job_ended, saved; /* told by events, which may overtake the command's own answer */
	int sockets[BUILD_SOCKETS]; /* -1: not here yet, or in use */
	size_t n_sockets;
	struct agent_dial dial;
	struct agent_link agent;
	struct agent_exec exec;
	struct template_watcher watcher;
	struct template_job *job;
	bool quitting;
};

static struct build *of_call(struct qmp_call *c)
{
	return CONTAINER_OF(c, struct build, call);
}

static void release(struct build *b)
{
	timer_stop(&b->step);
	timer_stop(&b->deadline);
	timer_stop(&b->settle);
	agent_dial_cancel(&b->dial);
	agent_link_close(&b->agent);
	agent_exec_cancel(&b->exec);
	template_job_cancel(TAKE(b->job));
	for (size_t i = 0; i < BUILD_SOCKETS; i++)
		if (b->sockets[i] >= 0)
			close(take_fd(&b->sockets[i]));
	machine_close(b->machine);
	free(b);
}

void build_cancel(struct build *b)
{
	if (b)
		release(b);
}

void build_fail(struct build *b, const struct err *why)
{
	struct build_user *u = b->user;
	struct err err = *why;

	err_wrap(&err, "build: %s", b->step_name);
	release(b);
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

static void begin(struct build *b, const char *name, uint64_t ms)
{
	b->step_name = name;
	timer_start(&b->step, ms);
}

static void reached(struct build *b, const char *name)
{
	timer_stop(&b->step);
	steps_add(&b->machine->steps, name);
}

static void ask(struct build *b, const char *command, json_t *arguments,
		void (*on_done)(struct qmp_call *c, const json_t *ret, const struct err *err))
{
	struct err err;

	if (machine_ask(b->machine, &b->call, command, arguments, on_done, &err) < 0)
		build_fail(b, &err);
}

static void fail_with(struct build *b, const char *what)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, 0, "%s", what);
	build_fail(b, &err);
}

/* --- sealing -----------------------------------------------------------------------------------
 */

static void on_sealed(struct template_watcher *w, const struct manifest *m,
		      enum manifest_reason reason, const struct err *err)
{
	struct build *b = CONTAINER_OF(w, struct build, watcher);
	struct build_user *u = b->user;

	(void)reason;
	b->job = NULL;
	if (err) {
		build_fail(b, err);
		return;
	}
	reached(b, "sealed");
	release(b);
	u->ops->on_done(u, m, NULL);
}

void build_stopped(struct build *b, struct template_files *files, int manifest)
{
	static const struct template_watcher_ops ops = { on_sealed };
	struct err err;

	b->step_name = "seal";
	b->watcher.ops = &ops;
	if (template_seal(files, manifest, &b->spec.manifest, b->machine->loop, &b->watcher,
			  &b->job, &err) < 0)
		build_fail(b, &err);
}

/* --- saving ------------------------------------------------------------------------------------
 */

static void on_quit(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	(void)c, (void)ret, (void)err; /* the end of the conversation says the rest */
}

static void on_saved(struct build *b)
{
	reached(b, "saved");
	begin(b, "quit", MACHINE_COMMAND_MS);
	b->quitting = true;
	vm_life_enter(&b->machine->life, VM_STOPPING);
	ask(b, "quit", NULL, on_quit);
}

static void on_migrating(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = of_call(c);

	(void)ret;
	if (err)
		build_fail(b, err);
	else if (b->saved)
		on_saved(b);
}

static void on_capable(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = of_call(c);

	(void)ret;
	if (err)
		build_fail(b, err);
	else
		ask(b, "migrate", json_pack("{s:s}", "uri", b->spec.state_uri), on_migrating);
}

static void on_stopped(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = of_call(c);

	(void)ret;
	if (err) {
		build_fail(b, err);
		return;
	}
	vm_life_enter(&b->machine->life, VM_PAUSED);
	reached(b, "stopped");
	begin(b, "save", BUILD_SAVE_MS);
	ask(b, "migrate-set-capabilities", machine_capabilities(), on_capable);
}

/* What the guest still had to do, each of its copies would do again. */
static void on_settled(struct timer *t)
{
	struct build *b = CONTAINER_OF(t, struct build, settle);

	reached(b, "settled");
	begin(b, "stop", MACHINE_COMMAND_MS);
	ask(b, "stop", NULL, on_stopped);
}

static void on_frozen(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	struct build *b = CONTAINER_OF(l, struct build, agent);

	(void)a;
	if (err) {
		build_fail(b, err);
		return;
	}
	reached(b, "frozen");
	agent_link_close(&b->agent); /* no connection may outlive the machine it was made to */
	begin(b, "stop", BUILD_SETTLE_MS + MACHINE_COMMAND_MS);
	timer_start(&b->settle, BUILD_SETTLE_MS);
}

/* --- making ready ------------------------------------------------------------------------------
 */

static void freeze(struct build *b)
{
	struct err err;

	begin(b, "freeze", BUILD_FREEZE_MS + MACHINE_COMMAND_MS);
	if (agent_link_freeze(&b->agent, BUILD_FREEZE_MS, on_frozen, &err) < 0)
		build_fail(b, &err);
}

static void on_started(struct agent_exec *e, const struct agent_exec_result *ret,
		       const struct err *err)
{
	struct build *b = CONTAINER_OF(e, struct build, exec);

	(void)ret;
	if (err) {
		build_fail(b, err);
		return;
	}
	reached(b, "started");
	freeze(b);
}

static void on_start_dialled(struct agent_dial *d, struct stream *s, const struct err *err)
{
	struct build *b = CONTAINER_OF(d, struct build, dial);
	const struct agent_exec_spec spec = { .command = b->spec.start_command,
					      .user = b->spec.start_user,
					      .detach = true };
	struct err mine;

	if (!s)
		build_fail(b, err);
	else if (agent_exec_start(&b->exec, s, &spec, BUILD_START_MS, on_started, &mine) < 0)
		build_fail(b, &mine);
}

static void start_command(struct build *b)
{
	struct err err;

	begin(b, "start command", BUILD_START_MS);
	if (agent_dial_start(&b->dial, b->machine->loop, take_fd(&b->sockets[1]), &b->spec.agent,
			     BUILD_START_MS, on_start_dialled, &err) < 0)
		build_fail(b, &err);
}

static void on_healthy(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	struct build *b = CONTAINER_OF(l, struct build, agent);

	(void)a;
	if (err) {
		build_fail(b, err);
		return;
	}
	reached(b, "healthy");
	if (b->spec.start_command.len > 0)
		start_command(b);
	else
		freeze(b);
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

/* --- booting ------------------------------------------------------------------------------------
 */

static void await_agent(struct build *b)
{
	struct err err;

	if (b->machine->life.state != VM_RUNNING || b->n_sockets < BUILD_SOCKETS)
		return;
	if (agent_dial_start(&b->dial, b->machine->loop, take_fd(&b->sockets[0]), &b->spec.agent,
			     BUILD_BOOT_MS, on_boot_dialled, &err) < 0)
		build_fail(b, &err);
}

void build_socket(struct build *b, int fd)
{
	assert(b->n_sockets < BUILD_SOCKETS);
	b->sockets[b->n_sockets++] = fd;
	await_agent(b);
}

static void on_cont(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = of_call(c);

	(void)ret;
	if (err) {
		build_fail(b, err);
		return;
	}
	vm_life_enter(&b->machine->life, VM_RUNNING);
	reached(b, "cont");
	begin(b, "boot", BUILD_BOOT_MS);
	await_agent(b);
}

static void on_dismissed(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = of_call(c);

	(void)ret;
	if (err) {
		build_fail(b, err);
		return;
	}
	reached(b, "overlay");
	begin(b, "cont", MACHINE_COMMAND_MS);
	ask(b, "cont", NULL, on_cont);
}

/* The only job there is must be ours, concluded, and without an error. */
static void on_jobs(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = of_call(c);
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
		ask(b, "job-dismiss", json_pack("{s:s}", "id", JOB_ID), on_dismissed);
	}
}

static void on_creating(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = of_call(c);

	(void)ret;
	if (err)
		build_fail(b, err);
	else if (b->job_ended)
		ask(b, "query-jobs", NULL, on_jobs);
}

static void on_prelaunch(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = of_call(c);
	char status[32] = "?";

	if (err) {
		build_fail(b, err);
		return;
	}
	if (!machine_status(ret, status, sizeof(status)) || strcmp(status, "prelaunch") != 0) {
		fail_with(b, "QEMU does not wait to be started");
		return;
	}
	vm_life_enter(&b->machine->life, VM_PAUSED);
	begin(b, "overlay", BUILD_OVERLAY_MS);
	ask(b, "blockdev-create",
	    json_pack("{s:s, s:{s:s, s:s, s:I}}", "job-id", JOB_ID, "options", "driver", "qcow2",
		      "file", b->spec.overlay_node, "size", (json_int_t)b->spec.disk_bytes),
	    on_creating);
}

static void on_open(struct machine_user *mu)
{
	struct build *b = CONTAINER_OF(mu, struct build, machine_user);
	struct err err;

	if (machine_ask(b->machine, &b->call, "query-status", NULL, on_prelaunch, &err) < 0)
		build_fail(b, &err);
	else
		b->user->ops->want_sockets(b->user, BUILD_SOCKETS);
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
	struct bytes migration = machine_migration(event);
	bool answered = !b->call.link;

	/* An event counts in its own step, and once. */
	if (strcmp(b->step_name, "overlay") == 0 && !b->job_ended && is_job_end(event)) {
		b->job_ended = true;
		if (answered)
			ask(b, "query-jobs", NULL, on_jobs);
	} else if (strcmp(b->step_name, "save") != 0 || b->saved) {
		return;
	} else if (bytes_eq(migration, BYTES_LIT("completed"))) {
		b->saved = true;
		if (answered)
			on_saved(b);
	} else if (bytes_eq(migration, BYTES_LIT("failed"))) {
		fail_with(b, "QEMU could not save the device state");
	}
}

static void on_gone(struct machine_user *mu, const struct err *err)
{
	struct build *b = CONTAINER_OF(mu, struct build, machine_user);

	if (!b->quitting) {
		build_fail(b, err);
		return;
	}
	reached(b, "quit");
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
	b->sockets[0] = b->sockets[1] = -1;
	timer_init(&b->step, l, on_step_late);
	timer_init(&b->deadline, l, on_deadline);
	timer_init(&b->settle, l, on_settled);
	if (machine_connect(m, l, spec->qmp_path, &b->machine_user, err) < 0)
		return err_wrap(err, "build");
	begin(b, "start QEMU", MACHINE_DIAL_MS + QMP_LINK_GREETING_MS);
	timer_start(&b->deadline, BUILD_MS);
	*ret = TAKE(b);
	return 0;
}
