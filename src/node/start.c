/* start.c - from nothing to a machine that lacks an identity only.
 *
 *	row -> slot -> RESTORE -> restore (vm/) -> WAITING
 *
 * Whatever fails on the way ends the sandbox, and with it all it had.
 */
#include <errno.h>

#include "base/log.h"
#include "base/random.h"
#include "node/node.h"
#include "node/start.h"
#include "node/step.h"

static void fail(struct sandbox *s, const struct err *why)
{
	log_warn("%s failed while %s: %s", s->info.id, sandbox_state_name(s->state), why->msg);
	creates_failed(s, why);
	sandbox_end(s, NODE_VMM_CRASH, "failed");
}

/* --- the monitor, once it runs ------------------------------------------------------------ */

static void on_monitor(struct machine_user *u)
{
	(void)u;
}

static void on_monitor_event(struct machine_user *u, const struct qmp_message *event)
{
	(void)u, (void)event;
}

/* QEMU may have ended, or only talked too much: warden knows. */
static void on_monitor_gone(struct machine_user *u, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(u, struct sandbox, machine_user);

	log_info("%s: %s", s->info.id, err->msg);
	look_soon(s->node);
}

static const struct machine_user_ops monitor_ops = { on_monitor, on_monitor, on_monitor_event,
						     on_monitor_gone };

static int make_qmp_path(struct sandbox *s, struct err *err)
{
	int n = snprintf(s->qmp_path, sizeof(s->qmp_path), "%s/" WARDEN_QMP_PATH,
			 s->node->set[SET_STATE_DIR].text, s->info.id);

	if (n < 0 || (size_t)n >= sizeof(s->qmp_path))
		return err_set(err, ERR_INVALID, 0, "path too long");
	return 0;
}

void sandbox_watch_monitor(struct sandbox *s)
{
	struct err err;

	if (s->monitor_tried || s->machine.life.state != VM_NEW)
		return;
	s->monitor_tried = true;
	s->machine_user.ops = &monitor_ops;
	if (make_qmp_path(s, &err) < 0 ||
	    machine_connect(&s->machine, s->node->loop, s->qmp_path, &s->machine_user, &err) < 0)
		log_warn("%s: %s", s->info.id, err.msg);
}

/* --- restoring ---------------------------------------------------------------------------- */

static void on_socket(struct warden_ask *a, const struct warden_reply *reply, int *fds,
		      size_t n_fds, const struct err *failed)
{
	struct sandbox *s = CONTAINER_OF(a, struct sandbox, ask);
	struct err err;

	(void)reply;
	if (failed) {
		restore_fail(&s->restore, failed);
	} else if (n_fds != 1) {
		err_set(&err, ERR_INTERNAL, 0, "warden sent %zu sockets", n_fds);
		restore_fail(&s->restore, &err);
	} else {
		restore_socket(&s->restore, take_fd(&fds[0]));
	}
}

static void on_want_socket(struct restore_user *u)
{
	struct sandbox *s = CONTAINER_OF(u, struct sandbox, restore_user);
	struct warden_request rq = { .verb = WARDEN_SOCKETS, .count = 1 };

	snprintf(rq.id, sizeof(rq.id), "%s", s->info.id);
	warden_again(&s->node->warden, &s->ask, &rq, RESTORE_MS, on_socket);
}

static void on_held(struct restore_user *u) /* never asked for */
{
	(void)u;
	abort();
}

static void on_waiting(struct restore_user *u)
{
	struct sandbox *s = CONTAINER_OF(u, struct sandbox, restore_user);

	/* nobody waits: there is time to go through it once, which makes the claim quick */
	if (s->rehearsals < SANDBOX_REHEARSALS && s->node->creates.n == 0) {
		s->rehearsals++;
		s->identity.stay_frozen = true;
		restore_rehearse(&s->restore, &s->identity);
		return;
	}
	sandbox_enter(&s->node->table, s, SANDBOX_WAITING);
	if (s->for_pool)
		step("pool.ready");
	creates_ready(s);
}

static void on_restored(struct restore_user *u, const struct agent_clock *clock,
			const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(u, struct sandbox, restore_user);

	(void)clock;
	if (err) {
		fail(s, err);
		return;
	}
	s->machine_user.ops = &monitor_ops;
	machine_set_user(&s->machine, &s->machine_user);
	sandbox_named(s);
}

static int begin_restore(struct sandbox *s, struct err *err)
{
	static const struct restore_user_ops ops = { on_want_socket, on_held, on_restored,
						     on_waiting };
	const struct restore_spec spec = { .qmp_path = s->qmp_path,
					   .state_uri = WARDEN_STATE_URI,
					   .agent = s->node->agent };

	s->restore_user.ops = &ops;
	if (make_qmp_path(s, err) < 0)
		return -1;
	return restore_start(&s->restore, &s->machine, s->node->loop, &spec, &s->restore_user, err);
}

static void on_started(struct warden_call *c, const struct warden_reply *reply, int *fds,
		       size_t n_fds, const struct err *failed)
{
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, call);
	struct err err;

	(void)reply, (void)fds, (void)n_fds;
	if (failed) {
		fail(s, failed);
		return;
	}
	step(s->for_pool ? "pool.restore" : "create.restore");
	steps_add(&s->machine.steps, "started");
	sandbox_enter(&s->node->table, s, SANDBOX_RESTORING);
	if (begin_restore(s, &err) < 0)
		fail(s, &err);
}

/* --- a slot, and QEMU in it --------------------------------------------------------------- */

static void on_slot(struct slot_wait *w, uint32_t slot)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, slot_wait);
	struct warden_request rq = { .verb = WARDEN_RESTORE,
				     .slot = slot,
				     .sizes = s->node->sizes };
	struct err err;

	s->slot = slot;
	step(s->for_pool ? "pool.slot" : "create.slot");
	steps_add(&s->machine.steps, "slot");
	egress_name(&s->node->egress, slot, s->info.id);
	snprintf(rq.id, sizeof(rq.id), "%s", s->info.id);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", s->info.template_id);
	sandbox_enter(&s->node->table, s, SANDBOX_STARTING);
	if (warden_once(&s->node->warden, &s->call, &rq, on_started, &err) < 0)
		fail(s, &err);
	else
		s->started = true;
}

static void on_noted(struct journal_write *w, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);

	if (err) {
		fail(s, err);
		return;
	}
	step(s->for_pool ? "pool.journal" : "create.journal");
	steps_add(&s->machine.steps, "noted");
	sandbox_enter(&s->node->table, s, SANDBOX_SLOT);
	slots_take(&s->node->slots, &s->slot_wait, on_slot);
}

/* --- the beginning ------------------------------------------------------------------------ */

static struct sandbox *make(struct node *n, struct err *err)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (!s) {
		err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate a sandbox");
		return NULL;
	}
	s->node = n;
	s->slot = WARDEN_NO_SLOT;
	return s;
}

static void describe(struct sandbox *s)
{
	const struct base_template *base = &s->node->base;
	struct node_sandbox *i = &s->info;
	char name[SANDBOX_NAME_LENGTH + 1];

	random_name(name, SANDBOX_NAME_LENGTH);
	snprintf(i->id, sizeof(i->id), "i%.8s%s", s->node->set[SET_NODE_ID].text, name);
	snprintf(i->template_id, sizeof(i->template_id), "%s", base->id);
	snprintf(i->alias, sizeof(i->alias), "%s", BASE_ALIAS);
	i->vcpus = s->node->sizes.vcpus;
	i->memory_mib = s->node->sizes.memory_mib;
	i->disk_mib = base->disk_mib;
	i->generation = 1;
}

struct sandbox *sandbox_begin(struct node *n, bool for_pool, struct err *err)
{
	struct sandbox *s = make(n, err);

	if (!s)
		return NULL;
	describe(s);
	s->for_pool = for_pool;
	steps_begin(&s->machine.steps);
	if (agent_identity_make(&s->identity, bytes_str(s->info.id), bytes_str(s->info.template_id),
				err) < 0) {
		free(s);
		return NULL;
	}
	snprintf(s->control_token, sizeof(s->control_token), "%.*s", NODE_ID_MAX,
		 s->identity.control_token);
	if (sandbox_note(s, &s->write, for_pool ? JOURNAL_POOLED : JOURNAL_CREATING, on_noted,
			 err) < 0) {
		agent_identity_done(&s->identity);
		free(s);
		return NULL;
	}
	table_add(&n->table, s);
	return s;
}

/* --- from the journal --------------------------------------------------------------------- */

static int load_running(struct sandbox *s, const struct journal_row *row, struct err *err)
{
	struct node *n = s->node;

	if (row->text && !(s->text = strdup(row->text)))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "load %s", s->info.id);
	sandbox_enter(&n->table, s, SANDBOX_RUNNING);
	if (table_own(&n->table, s, err) < 0)
		return -1;
	sandbox_set_deadline(s);
	return 0;
}

int sandbox_load(struct node *n, const struct journal_row *row, struct err *err)
{
	struct sandbox *s = make(n, err);

	if (!s)
		return -1;
	s->info = row->sandbox;
	s->slot = row->slot;
	s->started = true;
	memcpy(s->control_token, row->control_token, sizeof(s->control_token));
	table_add(&n->table, s);
	if (row->state == JOURNAL_RUNNING)
		return load_running(s, row, err);
	sandbox_end(s, NODE_LOST, "not finished when node ended");
	return 0;
}
