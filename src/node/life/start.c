/* start.c - from nothing to a machine that lacks an identity only.
 *
 *	row -> slot and files -> RESTORE -> restore (vm/) -> WAITING
 *
 * Whatever fails on the way ends the sandbox, and with it all it had. A resume goes the same way
 * from its slot on (resume.c), and nothing of it is lost when it fails.
 */
#include "node/life/start.h"

#include <errno.h>

#include "base/log.h"
#include "base/random.h"
#include "node/journal/row_file.h"
#include "node/life/claim.h"
#include "node/life/end.h"
#include "node/life/monitor.h"
#include "node/node.h"
#include "node/template/base_find.h"
#include "node/life/resume.h"
#include "node/life/sandbox_row.h"
#include "node/life/step.h"

#define STEP_OF(s, name) \
	((s)->resuming ? "resume." name : (s)->for_pool ? "pool." name : "create." name)

void sandbox_files_order(const struct sandbox *s, enum files_verb verb, struct files_order *ret)
{
	*ret = (struct files_order){ .verb = verb };
	memcpy(ret->id, s->info.id, sizeof(ret->id));
	memcpy(ret->template_id, s->base_id, sizeof(ret->template_id));
	if (strcmp(s->base_id, s->info.template_id) != 0)
		memcpy(ret->snapshot_id, s->info.template_id, sizeof(ret->snapshot_id));
	ret->verify = s->snapshot && !s->snapshot->verified;
	ret->lost = !row_end_was_wished((enum node_reason)s->info.reason);
	ret->generation = s->info.generation;
	ret->base_sums = s->base_sums;
	base_fill_order(s->node, ret);
	ret->blank_mib = s->blank ? s->info.memory_mib : 0;
	ret->booted = s->host != NULL;
	if (!s->host)
		return;
	ret->host = *s->host; /* what its row says of it has no sizes */
	ret->host.vcpus = s->info.vcpus;
	ret->host.memory_mib = s->info.memory_mib;
}

uint32_t sandbox_base_crc(const struct sandbox *s)
{
	return s->blank ? 0 : sums_memory(s->base_sums);
}

static void fail(struct sandbox *s, const struct err *why)
{
	if (s->resuming) {
		resume_failed(s, why);
		return;
	}
	log_warn("%s failed while %s: %s; request=%s", s->info.id, sandbox_state_name(s->state),
		 why->msg, s->request[0] ? s->request : "-");
	creates_failed(s, why);
	sandbox_end(s, NODE_VMM_CRASH, "failed");
}

/* --- restoring ---------------------------------------------------------------------------- */

static void on_socket(struct guest_sockets *g, int *fds, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(g, struct sandbox, socket);

	if (err)
		restore_fail(&s->restore, err);
	else
		restore_socket(&s->restore, take_fd(&fds[0]));
}

static void on_want_socket(struct restore_user *u)
{
	struct sandbox *s = CONTAINER_OF(u, struct sandbox, restore_user);

	guest_sockets_ask(&s->socket, &s->node->warden, s->info.id, 1, RESTORE_MS, on_socket);
}

static void on_want_apply(struct restore_user *u)
{
	resume_apply(CONTAINER_OF(u, struct sandbox, restore_user));
}

static void on_held(struct restore_user *u)
{
	resume_held(CONTAINER_OF(u, struct sandbox, restore_user));
}

static void on_waiting(struct restore_user *u)
{
	struct sandbox *s = CONTAINER_OF(u, struct sandbox, restore_user);

	if (s->create) { /* it was begun for that one */
		sandbox_enter(&s->node->table, s, SANDBOX_WAITING);
		creates_bound_ready(s);
		return;
	}
	if (s->rehearsals > 0) /* its agent is told by its own name from now on */
		s->identity.was_token[0] = '\0';
	/* nobody waits: there is time to go through it once, which makes the claim quick */
	if (s->rehearsals < SANDBOX_REHEARSALS && creates_pressing(&s->node->creates) == 0) {
		s->rehearsals++;
		s->identity.stay_frozen = true;
		restore_rehearse(&s->restore, &s->identity);
		return;
	}
	sandbox_enter(&s->node->table, s, SANDBOX_WAITING);
	if (s->for_pool)
		step("pool.ready");
	pools_ready(s);
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
	if (s->resuming) {
		resume_woken(s);
		return;
	}
	monitor_keep(s);
	sandbox_named(s);
}

static int begin_restore(struct sandbox *s, struct err *err)
{
	static const struct restore_user_ops ops = { on_want_apply, on_want_socket, on_held,
						     on_restored, on_waiting };
	struct restore_spec spec = { .user = &s->restore_user,
				     .qmp_path = s->qmp_path,
				     .state_uri = WARDEN_STATE_URI,
				     .agent = s->node->agent,
				     .boot = s->boots };

	s->restore_user.ops = &ops;
	if (s->resuming)
		resume_spec(s, &spec);
	if (monitor_path(s, err) < 0)
		return -1;
	return restore_start(&s->restore, &s->machine, s->node->loop, &spec, err);
}

static void on_started(struct link_call *c, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, call);
	struct err err;

	if (failed) {
		fail(s, failed);
		return;
	}
	step(STEP_OF(s, "restore"));
	steps_add(&s->machine.steps, "started");
	sandbox_enter(&s->node->table, s, SANDBOX_RESTORING);
	if (begin_restore(s, &err) < 0)
		fail(s, &err);
}

/* --- a slot and files, and QEMU with both ------------------------------------------------- */

static size_t give_fds(struct sandbox *s, int *fds, uint32_t *ret_flags)
{
	if (s->resuming)
		return resume_fds(s, fds, ret_flags);
	*ret_flags = s->boots ? (uint32_t)WARDEN_BOOT : 0;
	fds[WARDEN_FD_OVERLAY] = take_fd(&s->disk);
	return s->snapshot || s->blank ? 1 + files_opened_give(&s->below, fds + 1) : 1;
}

/* What boots has the kernel of now, whatever its disk was first booted with. */
static void choose_kernel(struct sandbox *s, struct warden_request *rq)
{
	const struct base_template *base = &s->node->base;

	s->kernel = (struct checksum){ 0 };
	if (!(rq->flags & WARDEN_BOOT) || base->state != BASE_READY || !s->host)
		return;
	snprintf(rq->kernel_id, sizeof(rq->kernel_id), "%s", base->id);
	s->kernel = base->manifest.files[MANIFEST_KERNEL_FILE];
	memcpy(s->host->kernel_version, base->manifest.made_with.kernel_version,
	       sizeof(s->host->kernel_version));
}

static void launch(struct sandbox *s)
{
	struct warden_request rq = { .verb = WARDEN_RESTORE,
				     .slot = s->slot,
				     .sizes = s->node->sizes };
	int fds[WARDEN_FDS_MAX];
	size_t n = give_fds(s, fds, &rq.flags);
	struct err err;

	if (s->facts != s->node->warden.facts_number) { /* what was checked is not true any more */
		for (size_t i = 0; i < n; i++)
			close(fds[i]);
		err_set(&err, ERR_UNAVAILABLE, 0, "warden was replaced by one with another QEMU");
		fail(s, &err);
		return;
	}
	rq.sizes.vcpus = s->info.vcpus;
	rq.sizes.memory_mib = s->info.memory_mib;
	rq.sizes.disk_mib = s->info.disk_mib;
	snprintf(rq.id, sizeof(rq.id), "%s", s->info.id);
	snprintf(rq.template_id, sizeof(rq.template_id), "%s", s->base_id);
	memcpy(rq.request, s->request, sizeof(rq.request));
	choose_kernel(s, &rq);
	sandbox_enter(&s->node->table, s, SANDBOX_STARTING);
	if (warden_once_fds(&s->node->warden, &s->call,
			    &(struct warden_asked){ &rq, fds, n, WARDEN_CALL_MS }, on_started,
			    &err) < 0)
		fail(s, &err);
	else
		s->started = true;
}

static void on_slot(struct slot_wait *w, uint32_t slot)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, slot_wait);

	s->slot = slot;
	step(STEP_OF(s, "slot"));
	steps_add(&s->machine.steps, "slot");
	network_tell(s);
	if (s->resuming || s->disk >= 0)
		launch(s);
}

void start_take_slot(struct sandbox *s)
{
	slots_take(&s->node->slots, &s->slot_wait, on_slot);
}

static void on_made(struct files_call *c, struct files_opened *got, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, files);

	base_learn(s->node, s->base_id, got);
	if (s->snapshot)
		unloaded_note(s->node, LOST_SNAPSHOT, s->snapshot->row.id, err);
	if (err && err->code == ERR_BASE_LOST && strcmp(s->info.template_id, s->node->base.id) == 0)
		base_look_again(s->node, err->msg); /* whoever waits gets one of another */
	if (err) {
		fail(s, err);
		return;
	}
	s->disk = take_fd(&got->disk);
	if (s->snapshot)
		s->base_sums = got->base_sums;
	if (s->snapshot && !s->blank) /* else its memory was not read */
		s->snapshot->verified = true;
	if (s->snapshot || s->blank) {
		s->below = *got;
		*got = FILES_NONE;
	}
	step(STEP_OF(s, "files"));
	steps_add(&s->machine.steps, "files");
	if (s->slot != WARDEN_NO_SLOT)
		launch(s);
}

static void on_noted(struct journal_write *w, const struct err *failed)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);
	struct files_order o;
	struct err err;

	if (failed) {
		fail(s, failed);
		return;
	}
	step(STEP_OF(s, "journal"));
	steps_add(&s->machine.steps, "noted");
	sandbox_enter(&s->node->table, s, SANDBOX_SLOT);
	sandbox_files_order(s, FILES_MAKE, &o);
	o.memory = !s->boots;
	base_facts_sized(s->node, s->info.vcpus, s->info.memory_mib, &o.here);
	if (s->host)
		*s->host = o.here;
	s->facts = s->node->warden.facts_number;
	if (files_ask(s->node->files, &s->files, &o, on_made, &err) < 0)
		fail(s, &err);
	else
		start_take_slot(s);
}

/* --- the beginning ------------------------------------------------------------------------ */

struct sandbox *sandbox_make(struct node *n, struct err *err)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (!s) {
		err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate a sandbox");
		return NULL;
	}
	s->node = n;
	s->slot = WARDEN_NO_SLOT;
	s->disk = -1;
	s->below = FILES_NONE;
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
	i->generation = SANDBOX_FIRST_GENERATION;
	snprintf(s->base_id, sizeof(s->base_id), "%s", base->id);
	s->base_sums = manifest_sums(&base->manifest);
}

static void describe_copy(struct sandbox *s, const struct journal_snapshot *of)
{
	struct node_sandbox *i = &s->info;

	memcpy(i->template_id, of->id, sizeof(i->template_id));
	memcpy(i->alias, of->name, sizeof(i->alias));
	memcpy(s->base_id, of->base_id, sizeof(s->base_id));
	s->base_sums = of->base_sums;
	i->vcpus = of->vcpus;
	i->memory_mib = of->memory_mib;
	i->disk_mib = of->disk_mib;
}

/* Of a template other than `base`. One that is not booted must fit this host. */
static int describe_ground(struct sandbox *s, const char *id, struct err *err)
{
	AUTO(auto_close) int folder = base_open_folder(s->node, id, err);
	enum manifest_reason reason;
	struct manifest_facts here;
	struct manifest m;

	if (folder < 0 || template_manifest_read(folder, &m, err) < 0)
		return err_wrap(err, "template %s", id);
	base_facts_sized(s->node, m.made_with.vcpus, m.made_with.memory_mib, &here);
	if (!s->boots && manifest_check(&m, &here, &reason, err) < 0)
		return err_wrap(err, "template %s", id);
	snprintf(s->info.template_id, sizeof(s->info.template_id), "%s", id);
	snprintf(s->base_id, sizeof(s->base_id), "%s", id);
	s->info.alias[0] = '\0';
	s->base_sums = manifest_sums(&m);
	s->info.vcpus = m.made_with.vcpus;
	s->info.memory_mib = m.made_with.memory_mib;
	s->info.disk_mib = (uint32_t)(m.files[MANIFEST_DISK_FILE].length >> 20);
	return 0;
}

static int describe_own(struct sandbox *s, struct create *c, struct err *err)
{
	s->create = c;
	s->snapshot = c->snapshot;
	s->boots = c->flags & NODE_BOOT;
	if (c->snapshot)
		describe_copy(s, &c->snapshot->row);
	else if (c->ground[0] && describe_ground(s, c->ground, err) < 0)
		return -1;
	if (s->boots && c->vcpus) {
		s->info.vcpus = c->vcpus;
		s->info.memory_mib = c->memory_mib;
	}
	s->blank = s->boots && (c->vcpus || c->builder ||
				(c->snapshot && c->snapshot->row.kind == JOURNAL_STEP));
	if (s->boots && !(s->host = calloc(1, sizeof(*s->host))))
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "what it boots on");
	return 0;
}

static int draw_identity(struct sandbox *s, struct err *err)
{
	const struct node_sandbox told = sandbox_told(s);

	if (agent_identity_make(&s->identity, bytes_str(s->info.id), bytes_str(told.template_id),
				err) < 0)
		return -1;
	snprintf(s->control_token, sizeof(s->control_token), "%.*s", NODE_ID_MAX,
		 s->identity.control_token);
	snprintf(s->machine_id, sizeof(s->machine_id), "%s", s->identity.machine_id);
	snprintf(s->boot_id, sizeof(s->boot_id), "%s", s->identity.boot_id);
	s->identity.left_behind = s->snapshot && !s->boots;
	if (s->identity.left_behind)
		snprintf(s->identity.was_token, sizeof(s->identity.was_token), "%s",
			 s->snapshot->row.control_token);
	return 0;
}

struct begin { /* for a create, or for nobody in particular: then `pool` */
	struct create *create;
	struct pool *pool;
	bool for_pool;
};

static int describe_source(struct sandbox *s, const struct begin *b, struct err *err)
{
	describe(s);
	s->for_pool = b->for_pool;
	if (b->create)
		return describe_own(s, b->create, err);
	s->snapshot = b->pool->snapshot;
	if (s->snapshot)
		describe_copy(s, &s->snapshot->row);
	return 0;
}

static struct sandbox *begin(struct node *n, const struct begin *b, struct err *err)
{
	struct sandbox *s = sandbox_make(n, err);

	if (!s)
		return NULL;
	if (describe_source(s, b, err) < 0) {
		free(s->host);
		free(s);
		return NULL;
	}
	if (b->create)
		memcpy(s->request, b->create->request, sizeof(s->request));
	steps_begin(&s->machine.steps);
	if (draw_identity(s, err) < 0 ||
	    sandbox_note(s, &s->write, b->for_pool ? JOURNAL_POOLED : JOURNAL_CREATING, on_noted,
			 err) < 0) {
		agent_identity_done(&s->identity);
		free(s->host);
		free(s);
		return NULL;
	}
	if (s->snapshot)
		snapshot_hold(s->snapshot);
	if (s->snapshot && s->snapshot->row.known) /* it can do without */
		s->network.known = strdup(s->snapshot->row.known);
	table_add(&n->table, s);
	if (b->pool)
		pools_begun(s, b->pool);
	return s;
}

struct sandbox *sandbox_begin(struct node *n, struct pool *pool, const char *request,
			      struct err *err)
{
	struct sandbox *s =
		begin(n, &(struct begin){ .pool = pool, .for_pool = request == NULL }, err);

	if (s && request)
		snprintf(s->request, sizeof(s->request), "%s", request);
	return s;
}

struct sandbox *sandbox_begin_copy(struct node *n, struct create *c, struct err *err)
{
	return begin(n, &(struct begin){ .create = c }, err);
}
