/* build.c - see build.h. From its end to its beginning: sealing, saving, what is run in the guest,
 * booting.
 */
#include "vm/build.h"

#include <assert.h>
#include <errno.h>

#include "vm/package_hosts.h"
#include "vm/provision.h"
#include "vm/trust_ca.h"

#define JOB_ID "overlay"

enum { HEALTH_MS = 10 * 1000, SAID_MAX = 150 };

static_assert((int)MANIFEST_PACKAGES_MAX == (int)PACKAGE_HOSTS_TEXT_MAX,
	      "one is put into the other");

/* What is run in the guest, in this order; any may be absent. */
enum build_command {
	BUILD_PROVISION,
	BUILD_TRUST,
	BUILD_ASK_PACKAGES,
	BUILD_START,
	BUILD_READY,
	BUILD_COMMANDS
};

typedef void build_next_fn(struct build *b, const json_t *ret); /* ret: of QEMU */

struct build {
	struct build_user *user;
	struct machine *machine;
	struct machine_user machine_user;
	struct build_spec spec;
	const char *step_name; /* a literal */
	build_next_fn *next;   /* after an answer of QEMU or the agent */
	struct timer step, deadline, settle;
	struct qmp_call call;
	bool job_ended; /* told by an event, which may overtake the command's own answer */
	int socket;     /* -1: not here yet, or in use */
	bool commanded; /* it is for a command, not for the agent's health */
	struct agent_dial dial;
	struct agent_link agent;
	struct agent_exec exec;
	enum build_command command; /* that is run, or the next */
	struct template_watcher watcher;
	struct template_job *job;
	bool quitting;
};

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

/* Each step has a deadline of its own, and a name for errors; what was reached has a time. */
static void build_begin(struct build *b, const char *name, uint64_t ms)
{
	b->step_name = name;
	timer_start(&b->step, ms);
}

static void build_reached(struct build *b, const char *name)
{
	timer_stop(&b->step);
	steps_add(&b->machine->steps, name);
}

static void go_on(struct build *b, const json_t *ret, const struct err *err)
{
	if (err)
		build_fail(b, err);
	else
		b->next(b, ret);
}

static void on_answer(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	go_on(CONTAINER_OF(c, struct build, call), ret, err);
}

static void on_agent(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	(void)a;
	go_on(CONTAINER_OF(l, struct build, agent), NULL, err);
}

/* These may fail the build: b is gone then, so each is the last thing its caller does. */
static void build_ask(struct build *b, const char *command, json_t *arguments, build_next_fn *next)
{
	struct err err;

	b->next = next;
	if (machine_ask(b->machine, &b->call, command, arguments, on_answer, &err) < 0)
		build_fail(b, &err);
}

static void build_fail_with(struct build *b, const char *what)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, 0, "%s", what);
	build_fail(b, &err);
}

/* --- sealing ------------------------------------------------------------------------------ */

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
	build_reached(b, "sealed");
	build_cancel(b);
	u->ops->on_done(u, m, NULL);
}

void build_stopped(struct build *b, struct template_files *files, int manifest)
{
	static const struct template_watcher_ops ops = { on_sealed };
	const struct template_spec spec = { files, &b->spec.manifest, b->machine->loop,
					    &b->watcher };
	struct err err;

	b->step_name = "seal";
	b->watcher.ops = &ops;
	if (template_seal(&spec, manifest, &b->job, &err) < 0)
		build_fail(b, &err);
}

/* --- saving ------------------------------------------------------------------------------- */

static void on_quit(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	(void)c, (void)ret, (void)err; /* the end of the conversation says the rest */
}

static void on_saved(struct build *b, const json_t *ret)
{
	struct err err;

	(void)ret;
	build_reached(b, "saved");
	build_begin(b, "quit", MACHINE_COMMAND_MS);
	b->quitting = true;
	vm_life_enter(&b->machine->life, VM_STOPPING);
	if (machine_ask(b->machine, &b->call, "quit", NULL, on_quit, &err) < 0)
		build_fail(b, &err);
}

static void on_stopped(struct build *b, const json_t *ret)
{
	struct err err;

	(void)ret;
	vm_life_enter(&b->machine->life, VM_PAUSED);
	build_reached(b, "stopped");
	build_begin(b, "save", BUILD_SAVE_MS);
	b->next = on_saved;
	if (machine_save(b->machine, &b->call, b->spec.state_file, on_answer, &err) < 0)
		build_fail(b, &err);
}

/* What the guest still had to do, each of its copies would do again. */
static void on_settled(struct timer *t)
{
	struct build *b = CONTAINER_OF(t, struct build, settle);
	struct err err;

	build_reached(b, "settled");
	build_begin(b, "stop", MACHINE_STOP_MS);
	b->next = on_stopped;
	if (machine_stop(b->machine, &b->call, on_answer, &err) < 0)
		build_fail(b, &err);
}

static void on_frozen(struct build *b, const json_t *ret)
{
	(void)ret;
	build_reached(b, "frozen");
	agent_link_close(&b->agent); /* no connection may outlive the machine it was made to */
	build_begin(b, "stop", BUILD_SETTLE_MS + MACHINE_COMMAND_MS);
	timer_init(&b->settle, b->machine->loop, on_settled);
	timer_start(&b->settle, BUILD_SETTLE_MS);
}

static void build_freeze(struct build *b)
{
	struct err err;

	build_begin(b, "freeze", BUILD_FREEZE_MS + MACHINE_COMMAND_MS);
	b->next = on_frozen;
	if (agent_link_ask(&b->agent, AGENT_FREEZE_DISK, BUILD_FREEZE_MS, on_agent, &err) < 0)
		build_fail(b, &err);
}

/* --- what is run in the guest, one after the other ----------------------------------------- */

struct command {
	const char *what, *reached; /* literals */
	struct bytes text, user;    /* no text: not run */
	uint64_t ms;
	bool detach;    /* it goes on */
	bool must_work; /* and if not, so does the build not */
};

static struct command command_of(const struct build *b)
{
	const struct build_spec *s = &b->spec;
	const struct bytes none = { 0 };

	switch (b->command) {
	case BUILD_PROVISION:
		return (struct command){ .what = "provision",
					 .reached = "provisioned",
					 .text = s->provision ? provision_script() : none,
					 .user = BYTES_LIT("root"),
					 .ms = BUILD_PROVISION_MS,
					 .must_work = true };
	case BUILD_TRUST:
		return (struct command){ .what = "trust certificates",
					 .reached = "trusted",
					 .text = s->ca.len > 0 ? trust_ca_script() : none,
					 .user = BYTES_LIT("root"),
					 .ms = BUILD_TRUST_MS,
					 .must_work = true };
	case BUILD_ASK_PACKAGES:
		return (struct command){ .what = "package hosts",
					 .reached = "packages",
					 .text = s->ask_packages ? package_hosts_script() : none,
					 .user = s->start_user,
					 .ms = BUILD_PACKAGES_MS };
	case BUILD_START:
		return (struct command){ .what = "start command",
					 .reached = "started",
					 .text = s->start_command,
					 .user = s->start_user,
					 .ms = BUILD_START_MS,
					 .detach = true };
	case BUILD_READY:
		return (struct command){ .what = "ready command",
					 .reached = "ready",
					 .text = s->ready_command,
					 .user = s->start_user,
					 .ms = BUILD_READY_MS,
					 .must_work = true };
	case BUILD_COMMANDS:
		break;
	}
	return (struct command){ 0 };
}

static void build_commands(struct build *b);

static void on_ended(struct agent_exec *e, const struct agent_exec_result *ret,
		     const struct err *failed)
{
	struct build *b = CONTAINER_OF(e, struct build, exec);
	const struct command c = command_of(b);
	struct err err;

	if (failed) {
		build_fail(b, failed);
		return;
	}
	if (c.must_work && (!ret->exited || ret->exit_code != 0)) {
		err_set(&err, ERR_INVALID, 0, "it ended with %s%s%.*s", ret->status,
			ret->err.len > 0 ? ": " : "", (int)bytes_head(ret->err, SAID_MAX).len,
			ret->err.ptr);
		build_fail(b, &err);
		return;
	}
	if (b->command == BUILD_ASK_PACKAGES)
		package_hosts_read(ret->out, b->spec.manifest.packages);
	build_reached(b, c.reached);
	b->command++;
	build_commands(b);
}

static void on_dialled(struct agent_dial *d, struct stream *s, const struct err *failed)
{
	struct build *b = CONTAINER_OF(d, struct build, dial);
	const struct command c = command_of(b);
	AUTO(json_decrefp)
	json_t *env = json_pack("{s:s%}", TRUST_CA_VARIABLE, b->spec.ca.ptr, b->spec.ca.len);
	const struct agent_exec_spec spec = {
		.command = c.text,
		.user = c.user,
		.env = b->command == BUILD_TRUST ? env : NULL,
		.detach = c.detach,
		.deadline_ms = c.ms,
	};
	struct err err;

	if (!s)
		build_fail(b, failed);
	else if (agent_exec_start(&b->exec, s, &spec, on_ended, &err) < 0)
		build_fail(b, &err);
}

/* The socket that was wanted for a command. */
static void build_commands_socket(struct build *b)
{
	struct err err;

	if (agent_dial_start(&b->dial,
			     &(struct agent_dial_spec){ b->machine->loop, take_fd(&b->socket),
							&b->spec.agent, AGENT_DIAL_UP_MS,
							command_of(b).ms },
			     on_dialled, &err) < 0)
		build_fail(b, &err);
}

/* What is left to be run, then build_freeze(). */
static void build_commands(struct build *b)
{
	struct command c = command_of(b);

	while (b->command < BUILD_COMMANDS && c.text.len == 0) {
		b->command++;
		c = command_of(b);
	}
	if (b->command == BUILD_COMMANDS) {
		build_freeze(b);
		return;
	}
	build_begin(b, c.what, c.ms);
	b->commanded = true;
	b->user->ops->want_socket(b->user);
}

/* --- booting ------------------------------------------------------------------------------ */

static void on_healthy(struct build *b, const json_t *ret)
{
	(void)ret;
	build_reached(b, "healthy");
	build_commands(b);
}

static void on_boot_dialled(struct agent_dial *d, struct stream *s, const struct err *err)
{
	struct build *b = CONTAINER_OF(d, struct build, dial);
	struct err mine;

	b->next = on_healthy;
	if (!s)
		build_fail(b, err);
	else if (agent_link_open(&b->agent, s, &mine) < 0 ||
		 agent_link_ask(&b->agent, AGENT_HEALTH, HEALTH_MS, on_agent, &mine) < 0)
		build_fail(b, &mine);
}

static void await_agent(struct build *b)
{
	struct err err;

	if (b->machine->life.state != VM_RUNNING || b->socket < 0)
		return;
	if (agent_dial_start(&b->dial,
			     &(struct agent_dial_spec){ b->machine->loop, take_fd(&b->socket),
							&b->spec.agent, AGENT_DIAL_BOOT_MS,
							BUILD_BOOT_MS },
			     on_boot_dialled, &err) < 0)
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

static void on_cont(struct build *b, const json_t *ret)
{
	(void)ret;
	vm_life_enter(&b->machine->life, VM_RUNNING);
	build_reached(b, "cont");
	build_begin(b, "boot", BUILD_BOOT_MS);
	await_agent(b);
}

static void on_dismissed(struct build *b, const json_t *ret)
{
	(void)ret;
	build_reached(b, "overlay");
	build_begin(b, "cont", MACHINE_COMMAND_MS);
	build_ask(b, "cont", NULL, on_cont);
}

/* The only job there is must be ours, concluded, and without an error. */
static void on_jobs(struct build *b, const json_t *ret)
{
	struct bytes id = { 0 }, status = { 0 }, why = { 0 };
	const json_t *job = json_array_get(ret, 0);
	struct err mine;

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

static void on_creating(struct build *b, const json_t *ret)
{
	(void)ret;
	if (b->job_ended)
		build_ask(b, "query-jobs", NULL, on_jobs);
}

static void on_prelaunch(struct build *b, const json_t *ret)
{
	char status[32] = "?";

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

	b->next = on_prelaunch;
	if (machine_ask(b->machine, &b->call, "query-status", NULL, on_answer, &err) < 0)
		build_fail(b, &err);
	else
		b->user->ops->want_socket(b->user);
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
		struct build **ret, struct err *err)
{
	static const struct machine_user_ops ops = { on_open, NULL, on_event, on_gone };
	AUTO(auto_free) struct build *b = calloc(1, sizeof(*b));

	if (!b)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate a build");
	b->user = spec->user;
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
