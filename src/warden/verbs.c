/* verbs.c - each verb: what it needs, what it starts, what it answers. Starting and stopping VMs
 * is in lifecycle.c. */
/* #parses: ids, numbers and sizes in a request; from node */
#include "warden/verbs.h"

#include <errno.h>

#include "base/clock.h"
#include "base/folder.h"
#include "warden/clients.h"
#include "warden/copy.h"
#include "warden/lifecycle.h"
#include "warden/step.h"
#include "warden/tasks.h"
#include "warden/template.h"

static int verb_facts(struct warden *w, const struct call *c, struct err *err)
{
	struct warden_reply r = { .facts.emulated = w->vmm.accel == VMM_TCG };
	struct warden_facts *f = &r.facts;

	snprintf(f->vmm_version, sizeof(f->vmm_version), "%s", w->vmm_version);
	snprintf(f->cpu_model, sizeof(f->cpu_model), "%s", w->vmm.cpu_model);
	snprintf(f->accel, sizeof(f->accel), "%s", w->vmm.accel == VMM_TCG ? "tcg" : "kvm");
	if (vmm_machine_text(&w->vmm, &c->rq.sizes, f->arguments, sizeof(f->arguments), err) < 0)
		return -1;
	f->uid_base = (uint32_t)w->set[SET_UID_BASE].number;
	f->uids = (uint32_t)w->set[SET_VMS_MAX].number;
	clients_reply(w, &c->who, &r, NULL, 0);
	return 0;
}

static int verb_list(struct warden *w, const struct call *c, struct err *err)
{
	struct warden_reply r = { 0 };
	const char *after = c->rq.id;
	struct cell *cell;

	(void)err;
	while (r.count < WARDEN_LIST_MAX && (cell = cell_after(&w->cells, after))) {
		struct warden_cell *out = &r.cells[r.count++];

		*out = (struct warden_cell){ .state = cell->state,
					     .slot = cell->record.slot,
					     .pid = cell->pid,
					     .uid = cell->record.uid };
		memcpy(out->id, cell->record.id, sizeof(out->id));
		memcpy(out->installation, cell->record.installation, sizeof(out->installation));
		after = cell->record.id;
	}
	clients_reply(w, &c->who, &r, NULL, 0);
	return 0;
}

/* --- slots --------------------------------------------------------------------------------- */

/* Round and round, so that a uid rests before it is used again. */
static int find_slot(struct warden *w, uint32_t *ret, struct err *err)
{
	uint32_t max = (uint32_t)w->set[SET_VMS_MAX].number;

	for (uint32_t n = 0; n < max; n++) {
		uint32_t i = (w->next_slot + n) % max;

		if (w->slots[i].state != SLOT_FREE)
			continue;
		w->next_slot = i + 1;
		*ret = i;
		return 0;
	}
	return err_set(err, ERR_EXHAUSTED, 0, "all %u slots are in use", max);
}

static int slot_job(const void *args, struct job_result *ret, struct err *err)
{
	struct slot s;

	if (slot_make(args, &s, err) < 0)
		return -1;
	ret->fds[0] = s.netns;
	ret->fds[1] = s.tap;
	ret->n_fds = 2;
	return 0;
}

static void slot_done(struct warden *w, struct task *t, const struct job_result *r)
{
	struct slot_place *p = &w->slots[t->slot];
	struct warden_reply reply = { .slot = t->slot };

	if (r->err.code != ERR_NONE) {
		p->state = SLOT_FREE;
		clients_reply_err(w, &t->who, &r->err);
		return;
	}
	p->slot = (struct slot){ .netns = r->fds[0], .tap = r->fds[1] };
	p->state = SLOT_READY;
	p->maker = t->who;
	step("slot.reply");
	clients_reply(w, &t->who, &reply, NULL, 0);
	clients_sweep_slots(w);
}

static int verb_slot_make(struct warden *w, const struct call *c, struct err *err)
{
	struct task *t;
	uint32_t i;

	if (find_slot(w, &i, err) < 0)
		return -1;
	t = tasks_start(w, slot_job, w->set[SET_NFT].text, NULL, slot_done, &c->who, err);
	if (!t)
		return -1;
	t->slot = i;
	w->slots[i].state = SLOT_MAKING;
	return 0;
}

static int verb_slot_drop(struct warden *w, const struct call *c, struct err *err)
{
	struct slot_place *p = lifecycle_ready_slot(w, c->rq.slot, err);

	if (!p)
		return -1;
	p->maker = NOBODY_WAITS;
	clients_sweep_slots(w);
	clients_reply(w, &c->who, &(struct warden_reply){ 0 }, NULL, 0);
	return 0;
}

/* --- sockets and templates ------------------------------------------------------------------ */

struct socket_work {
	int netns;
	uint32_t count;
};

static int sockets_job(const void *args, struct job_result *ret, struct err *err)
{
	const struct socket_work *s = args;

	ret->n_fds = s->count;
	return slot_sockets(s->netns, ret->fds, s->count, err);
}

static int doors_job(const void *args, struct job_result *ret, struct err *err)
{
	const struct slot *s = args;

	ret->n_fds = SLOT_DOORS;
	return slot_doors(s->netns, ret->fds, err);
}

static void fds_done(struct warden *w, struct task *t, const struct job_result *r)
{
	struct warden_reply reply = { .count = r->n_fds };

	if (r->err.code != ERR_NONE)
		clients_reply_err(w, &t->who, &r->err);
	else
		clients_reply(w, &t->who, &reply, r->fds, r->n_fds);
	job_result_close(r);
}

static int verb_sockets(struct warden *w, const struct call *c, struct err *err)
{
	struct cell *cell = cell_find(&w->cells, c->rq.id);
	struct socket_work s = { .count = c->rq.count };

	if (!cell || cell->state != WARDEN_RUNNING)
		return err_set(err, ERR_NOT_FOUND, 0, "vm %s is not running", c->rq.id);
	if (s.count < 1 || s.count > JOB_FDS_MAX)
		return err_set(err, ERR_INVALID, 0, "1 to %d sockets at once", JOB_FDS_MAX);
	s.netns = cell->netns;
	return tasks_start(w, sockets_job, &s, (const int[TASK_FDS_MAX]){ s.netns }, fds_done,
			   &c->who, err)
		       ? 0
		       : -1;
}

static void copy_done(struct warden *w, struct task *t, const struct job_result *r)
{
	if (r->err.code != ERR_NONE) {
		clients_reply_err(w, &t->who, &r->err);
		return;
	}
	step("copy.reply");
	clients_reply(w, &t->who, &(struct warden_reply){ .count = (uint32_t)r->pid }, NULL, 0);
}

/* A VM that builds a template has no memory of its own to copy: the file is its memory. */
static int verb_copy(struct warden *w, const struct call *c, struct err *err)
{
	const struct cell *cell = cell_find(&w->cells, c->rq.id);
	int keep[TASK_FDS_MAX] = { 0 };
	struct copy work = { .cgroups = &w->cgroups,
			     .program = w->set[SET_COPIER].text,
			     .vms = w->vms,
			     .apply = c->rq.flags & WARDEN_APPLY };

	if (!cell || cell->state != WARDEN_RUNNING || cell->record.build)
		return err_set(err, ERR_NOT_FOUND, 0, "vm %s does not run", c->rq.id);
	work.record = cell->record;
	work.pid = cell->pid;
	work.pidfd = keep[0] = cell->pidfd;
	for (size_t i = 0; i < COPIER_FDS; i++)
		work.fds[i] = keep[i + 1] = i < c->n_fds ? c->fds[i] : -1;
	return tasks_start(w, copy_job, &work, keep, copy_done, &c->who, err) ? 0 : -1;
}

static int verb_doors(struct warden *w, const struct call *c, struct err *err)
{
	const struct slot_place *p = &w->slots[c->rq.slot % CELLS_MAX];
	const int keep[TASK_FDS_MAX] = { p->slot.netns };

	if (c->rq.slot >= CELLS_MAX || (p->state != SLOT_READY && p->state != SLOT_USED))
		return err_set(err, ERR_NOT_FOUND, 0, "slot %u is not in use", c->rq.slot);
	return tasks_start(w, doors_job, &p->slot, keep, fds_done, &c->who, err) ? 0 : -1;
}

static int verb_template(struct warden *w, const struct call *c, struct err *err)
{
	static job_fn *const jobs[WARDEN_VERBS] = {
		[WARDEN_TEMPLATE_BEGIN] = template_begin_job,
		[WARDEN_TEMPLATE_PUBLISH] = template_publish_job,
		[WARDEN_TEMPLATE_WARM] = template_warm_job,
		[WARDEN_TEMPLATE_DROP] = template_drop_job,
	};
	struct template_work work = { .templates = w->templates,
				      .cgroups = &w->cgroups,
				      .memory_bytes = (uint64_t)c->rq.sizes.memory_mib << 20,
				      .client_gid = (gid_t)w->set[SET_CLIENT_GID].number,
				      .kernel = c->fds[0],
				      .disk = c->fds[1] };
	struct task *t;

	/* whoever asks: the VM may be of another installation, which the asker does not know */
	if (lifecycle_template_busy(w, c->rq.template_id) ||
	    (c->rq.verb == WARDEN_TEMPLATE_DROP && cell_uses(&w->cells, c->rq.template_id, false)))
		return err_set(err, ERR_EXISTS, 0, "template %s is in use", c->rq.template_id);
	memcpy(work.id, c->rq.template_id, sizeof(work.id));
	t = tasks_start(w, jobs[c->rq.verb], &work,
			c->n_fds ? (const int[TASK_FDS_MAX]){ work.kernel, work.disk } : NULL,
			fds_done, &c->who, err);
	if (!t)
		return -1;
	memcpy(t->template_id, work.id, sizeof(t->template_id));
	t->job.deadline_ns = clock_mono_ns() + TEMPLATE_DEADLINE_MS * NSEC_PER_MSEC;
	return 0;
}

/* --- the table ------------------------------------------------------------------------------ */

typedef int verb_fn(struct warden *w, const struct call *c, struct err *err);

enum { NEEDS_ID = 1, NEEDS_TEMPLATE = 2, NEEDS_SIZES = 4 };

static const struct {
	verb_fn *serve;
	unsigned int needs;
	size_t fds_min, fds_max;
} verbs[] = {
#define VERB(verb, serve, needs, fds_min, fds_max) { serve, needs, fds_min, fds_max },
#include "warden/verbs.def"
};

static int check_sizes(const struct warden_sizes *s, struct err *err)
{
	static const struct warden_sizes least = { 1, 64, 16, 0, 8, 0 };
	static const struct warden_sizes most = { 64,   1024 * 1024, 4096,
						  6400, 4096,        16 * 1024 * 1024 };

	if (s->vcpus < least.vcpus || s->vcpus > most.vcpus || s->memory_mib < least.memory_mib ||
	    s->memory_mib > most.memory_mib || s->overhead_mib < least.overhead_mib ||
	    s->overhead_mib > most.overhead_mib || s->cpu_percent > most.cpu_percent ||
	    s->pids_max < least.pids_max || s->pids_max > most.pids_max ||
	    s->disk_mib > most.disk_mib)
		return err_set(err, ERR_INVALID, 0, "sizes out of range");
	return 0;
}

/* A VM of another installation is nobody's to touch, whatever its id. */
static int check_owner(struct warden *w, const struct warden_request *rq, struct err *err)
{
	const struct cell *c = cell_find(&w->cells, rq->id);

	if (!memchr(rq->installation, 0, sizeof(rq->installation)))
		return err_set(err, ERR_INVALID, 0, "not an id of an installation");
	if (c && c->record.installation[0] && rq->installation[0] &&
	    strcmp(c->record.installation, rq->installation) != 0)
		return err_set(err, ERR_DENIED, 0, "vm %s is of another installation", rq->id);
	return 0;
}

static bool may_name_kernel(const struct warden_request *rq)
{
	return rq->verb == WARDEN_RESTORE && (rq->flags & WARDEN_BOOT) &&
	       folder_name_ok(rq->kernel_id, sizeof(rq->kernel_id));
}

static int check_call(struct warden *w, const struct call *c, struct err *err)
{
	const struct warden_request *rq = &c->rq;
	unsigned int needs;
	size_t least;

	if (!w->serving)
		return err_set(err, ERR_UNAVAILABLE, EAGAIN,
			       "warden is cleaning up after a restart");
	if (rq->verb >= WARDEN_VERBS)
		return err_set(err, ERR_INVALID, 0, "unknown verb");
	if (rq->request[0] && !folder_name_ok(rq->request, sizeof(rq->request)))
		return err_set(err, ERR_INVALID, 0, "not a name of a request");
	needs = verbs[rq->verb].needs;
	least = verbs[rq->verb].fds_min;
	if (c->n_fds < least || c->n_fds > verbs[rq->verb].fds_max)
		return err_set(err, ERR_INVALID, 0, "%zu descriptors, expected %zu", c->n_fds,
			       least);
	if (!memchr(rq->id, 0, sizeof(rq->id)) ||
	    ((needs & NEEDS_ID) && !folder_name_ok(rq->id, sizeof(rq->id))))
		return err_set(err, ERR_INVALID, 0, "not an id of a vm");
	if ((needs & NEEDS_TEMPLATE) && !folder_name_ok(rq->template_id, sizeof(rq->template_id)))
		return err_set(err, ERR_INVALID, 0, "not an id of a template");
	if (rq->kernel_id[0] && !may_name_kernel(rq))
		return err_set(err, ERR_INVALID, 0, "no boot, or not an id of a template");
	if ((needs & NEEDS_ID) && check_owner(w, rq, err) < 0)
		return -1;
	return needs & NEEDS_SIZES ? check_sizes(&rq->sizes, err) : 0;
}

void verbs_handle(struct warden *w, struct call *c)
{
	struct err err = { 0 };
	int rc = check_call(w, c, &err);

	if (rc == 0)
		memcpy(c->who.request, c->rq.request, sizeof(c->who.request));
	if (rc < 0 || verbs[c->rq.verb].serve(w, c, &err) < 0)
		clients_reply_err(w, &c->who, &err);
}
