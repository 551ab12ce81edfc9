/* lifecycle.c - see lifecycle.h. */
#include "warden/lifecycle.h"

#include <signal.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "base/log.h"
#include "warden/clients.h"
#include "warden/launch.h"
#include "warden/remove.h"
#include "warden/step.h"
#include "warden/tasks.h"

static void begin_removal(struct warden *w, struct cell *c);

bool lifecycle_template_busy(const struct warden *w, const char *id)
{
	for (size_t i = 0; i < TASKS_MAX; i++)
		if (w->tasks[i].done && strcmp(w->tasks[i].template_id, id) == 0)
			return true;
	return cell_uses(&w->cells, id, true);
}

struct slot_place *lifecycle_ready_slot(struct warden *w, uint32_t i, struct err *err)
{
	if (i < w->set[SET_VMS_MAX].number && w->slots[i].state == SLOT_READY)
		return &w->slots[i];
	err_set(err, ERR_INVALID, 0, "slot %u is not ready", i);
	return NULL;
}

/* The tap belongs to the VMM alone from now on; the namespace is the cell's, for new sockets. */
static void hand_over_slot(struct warden *w, struct cell *c)
{
	struct slot_place *p = &w->slots[c->record.slot];

	close(p->slot.tap);
	c->netns = p->slot.netns;
	p->slot.tap = -1;
}

static void launch_failed(struct warden *w, struct task *t, const struct job_result *r)
{
	struct err stopped = { 0 };

	err_set(&stopped, ERR_UNAVAILABLE, 0, "vm %s was stopped while it started",
		t->cell->record.id);
	clients_reply_err(w, &t->who, r->err.code ? &r->err : &stopped);
	job_result_close(r);
	if (t->cell->state != WARDEN_STOPPING)
		cell_enter(t->cell, WARDEN_STOPPING);
	begin_removal(w, t->cell);
}

static void launch_done(struct warden *w, struct task *t, const struct job_result *r)
{
	struct cell *c = t->cell;
	struct warden_reply reply = { .slot = c->record.slot, .count = (uint32_t)r->pid };
	struct err err = { 0 };

	hand_over_slot(w, c);
	if (r->err.code != ERR_NONE || c->state == WARDEN_STOPPING) {
		launch_failed(w, t, r);
		return;
	}
	cell_enter(c, WARDEN_RUNNING);
	c->pid = r->pid;
	c->pidfd = r->fds[0];
	if (warden_watch(w, c->pidfd, EVENT_CELL, (uint32_t)(c - w->cells.all), &err) < 0)
		log_error("watch %s: %s", c->record.id, err.msg);
	step("start.reply");
	clients_reply(w, &t->who, &reply, NULL, 0);
}

static struct cell *add_cell(struct warden *w, const struct warden_request *rq, struct err *err)
{
	struct record r = { .version = RECORD_VERSION,
			    .slot = rq->slot,
			    .uid = (uint32_t)w->set[SET_UID_BASE].number + rq->slot,
			    .build = rq->verb == WARDEN_BUILD };

	memcpy(r.id, rq->id, sizeof(r.id));
	memcpy(r.template_id, rq->template_id, sizeof(r.template_id));
	memcpy(r.installation, rq->installation, sizeof(r.installation));
	return cell_add(&w->cells, &r, err);
}

int lifecycle_start(struct warden *w, const struct call *call, struct err *err)
{
	struct slot_place *p = lifecycle_ready_slot(w, call->rq.slot, err);
	struct cell *c = NULL;
	struct launch l = { .sizes = call->rq.sizes,
			    .vmm = &w->vmm,
			    .cgroups = &w->cgroups,
			    .view_at = w->view_at,
			    .vms = w->vms,
			    .templates = w->templates,
			    .client_gid = (gid_t)w->set[SET_CLIENT_GID].number,
			    .build = call->rq.verb == WARDEN_BUILD,
			    .boot = call->rq.flags & WARDEN_BOOT,
			    .n_fds = call->n_fds };
	int keep[TASK_FDS_MAX] = { 0 };
	struct task *t;

	if (l.build && lifecycle_template_busy(w, call->rq.template_id))
		return err_set(err, ERR_EXISTS, 0, "template %s is in use", call->rq.template_id);
	if (p)
		c = add_cell(w, &call->rq, err);
	if (!c)
		return -1;
	l.record = c->record;
	memcpy(l.kernel_id, call->rq.kernel_id, sizeof(l.kernel_id));
	l.slot = p->slot;
	keep[0] = l.slot.netns;
	keep[1] = l.slot.tap;
	memcpy(keep + 2, call->fds, call->n_fds * sizeof(keep[0]));
	memcpy(l.fds, call->fds, call->n_fds * sizeof(keep[0]));
	t = tasks_start(w, launch_job, &l, keep, launch_done, &call->who, err);
	if (!t) {
		cell_forget(&w->cells, c);
		return -1;
	}
	t->cell = c;
	p->state = SLOT_USED;
	return 0;
}

/* --- stopping ------------------------------------------------------------------------------ */

static void removal_later(struct warden *w, struct cell *c, const struct err *why)
{
	log_error("remove %s: %s; it is tried again", c->record.id, why->msg);
	c->removal_due = true;
	w->removals_due++;
	w->retry_ns = clock_mono_ns() + RETRY_MS * NSEC_PER_MSEC;
}

static void removal_done(struct warden *w, struct task *t, const struct job_result *r)
{
	struct cell *c = t->cell;
	struct waiting who = c->stopper;

	if (r->err.code != ERR_NONE) {
		removal_later(w, c, &r->err);
		return;
	}
	w->slots[c->record.slot].state = SLOT_FREE;
	cell_forget(&w->cells, c);
	step("stop.reply");
	clients_reply(w, &who, &(struct warden_reply){ 0 }, NULL, 0);
}

static void begin_removal(struct warden *w, struct cell *c)
{
	struct removal r = { .cgroups = &w->cgroups, .vms = w->vms, .templates = w->templates };
	struct err err = { 0 };
	struct task *t;

	memcpy(r.id, c->record.id, sizeof(r.id));
	t = tasks_start(w, remove_job, &r, NULL, removal_done, &NOBODY_WAITS, &err);
	if (t)
		t->cell = c;
	else
		removal_later(w, c, &err);
}

void lifecycle_retry(struct warden *w)
{
	if (clock_mono_ns() < w->retry_ns)
		return;
	for (size_t i = 0; i < CELLS_MAX && w->removals_due > 0; i++) {
		struct cell *c = &w->cells.all[i];

		if (!c->removal_due)
			continue;
		c->removal_due = false;
		w->removals_due--;
		begin_removal(w, c);
		if (c->removal_due)
			return; /* no job is free: later */
	}
}

void lifecycle_exited(struct warden *w, struct cell *c)
{
	warden_unwatch(w, c->pidfd);
	close(c->pidfd);
	c->pidfd = -1;
	if (c->state == WARDEN_STOPPING) {
		step("stop.exited");
		begin_removal(w, c);
		return;
	}
	log_info("%s ended by itself", c->record.id);
	cell_enter(c, WARDEN_EXITED);
}

/* Its job ends without a result, and launch_done goes on from there. */
static void stop_launch(struct warden *w, const struct cell *c)
{
	for (size_t i = 0; i < TASKS_MAX; i++)
		if (w->tasks[i].done && w->tasks[i].cell == c)
			job_expire(&w->tasks[i].job);
}

int lifecycle_stop(struct warden *w, const struct call *call, struct err *err)
{
	struct cell *c = cell_find(&w->cells, call->rq.id);
	enum warden_cell_state was;

	if (!c)
		return err_set(err, ERR_NOT_FOUND, 0, "vm %s does not exist", call->rq.id);
	if (c->state == WARDEN_STOPPING)
		return err_set(err, ERR_EXISTS, 0, "vm %s is being stopped already", call->rq.id);
	was = c->state;
	c->stopper = call->who;
	cell_enter(c, WARDEN_STOPPING);
	step("stop.kill");
	if (was == WARDEN_STARTING)
		stop_launch(w, c);
	else if (was == WARDEN_EXITED)
		begin_removal(w, c);
	else
		syscall(SYS_pidfd_send_signal, c->pidfd, SIGKILL, NULL, 0);
	return 0;
}
