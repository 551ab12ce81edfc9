/* build_save.c - the second half of a build: freeze, stop, save, seal. */
#include "vm/build_inside.h"

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
	struct err err;

	b->step_name = "seal";
	b->watcher.ops = &ops;
	if (template_seal(files, manifest, &b->spec.manifest, b->machine->loop, &b->watcher,
			  &b->job, &err) < 0)
		build_fail(b, &err);
}

/* --- saving ------------------------------------------------------------------------------- */

static void on_quit(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	(void)c, (void)ret, (void)err; /* the end of the conversation says the rest */
}

static void on_saved(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct build *b = build_of_call(c);

	(void)ret;
	if (err) {
		build_fail(b, err);
		return;
	}
	build_reached(b, "saved");
	build_begin(b, "quit", MACHINE_COMMAND_MS);
	b->quitting = true;
	vm_life_enter(&b->machine->life, VM_STOPPING);
	build_ask(b, "quit", NULL, on_quit);
}

static void on_stopped(struct qmp_call *c, const json_t *ret, const struct err *failed)
{
	struct build *b = build_of_call(c);
	struct err err;

	(void)ret;
	if (failed) {
		build_fail(b, failed);
		return;
	}
	vm_life_enter(&b->machine->life, VM_PAUSED);
	build_reached(b, "stopped");
	build_begin(b, "save", BUILD_SAVE_MS);
	if (machine_save(b->machine, &b->call, b->spec.state_file, on_saved, &err) < 0)
		build_fail(b, &err);
}

/* What the guest still had to do, each of its copies would do again. */
static void on_settled(struct timer *t)
{
	struct build *b = CONTAINER_OF(t, struct build, settle);
	struct err err;

	build_reached(b, "settled");
	build_begin(b, "stop", MACHINE_STOP_MS);
	if (machine_stop(b->machine, &b->call, on_stopped, &err) < 0)
		build_fail(b, &err);
}

static void on_frozen(struct agent_link *l, const struct agent_answer *a, const struct err *err)
{
	struct build *b = CONTAINER_OF(l, struct build, agent);

	(void)a;
	if (err) {
		build_fail(b, err);
		return;
	}
	build_reached(b, "frozen");
	agent_link_close(&b->agent); /* no connection may outlive the machine it was made to */
	build_begin(b, "stop", BUILD_SETTLE_MS + MACHINE_COMMAND_MS);
	timer_init(&b->settle, b->machine->loop, on_settled);
	timer_start(&b->settle, BUILD_SETTLE_MS);
}

void build_freeze(struct build *b)
{
	struct err err;

	build_begin(b, "freeze", BUILD_FREEZE_MS + MACHINE_COMMAND_MS);
	if (agent_link_freeze_disk(&b->agent, BUILD_FREEZE_MS, on_frozen, &err) < 0)
		build_fail(b, &err);
}
