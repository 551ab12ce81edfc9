/* reconcile.c - page after page of warden's list: VMs in nobody's books are ended, those of another
 * installation left alone. Who lacks a VM is for absence.c. */
#include "node/recovery/reconcile.h"

#include "base/list.h"
#include "base/log.h"
#include "node/life/end.h"
#include "node/life/monitor.h"
#include "node/life/park.h"
#include "node/node.h"
#include "node/life/restart_stalled.h"

struct stray {
	struct node *node;
	struct link_call ask;
	struct stray *next, **prev;
};

static void ask_page(struct node *n, const char *after);

/* --- VMs of nobody ------------------------------------------------------------------------ */

static void stray_free(struct stray *s)
{
	link_cancel(&s->ask);
	list_remove(s);
	s->node->reconcile.n_strays--;
	free(s);
}

static void on_stray_gone(struct link_call *a, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct stray *s = CONTAINER_OF(a, struct stray, ask);
	struct node *n = s->node;

	if (err && err->code != ERR_NOT_FOUND && err->code != ERR_EXISTS)
		log_error("stop %s: %s", warden_request_of(r)->id, err->msg);
	stray_free(s);
	base_turn(n);
}

static void end_stray(struct node *n, const struct warden_cell *cell)
{
	struct warden_request rq = { .verb = WARDEN_STOP };
	struct stray *s =
		n->reconcile.n_strays < RECONCILE_STRAYS_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return;
	memcpy(rq.id, cell->id, sizeof(rq.id));
	log_warn("%s is in nobody's books: it is ended", rq.id);
	s->node = n;
	list_add(&n->reconcile.strays, s);
	n->reconcile.n_strays++;
	warden_again(&n->warden, &s->ask, &rq, 0, on_stray_gone);
}

/* --- one look ----------------------------------------------------------------------------- */

bool reconcile_wants_vm(const struct sandbox *s)
{
	return s->state == SANDBOX_RUNNING || s->state == SANDBOX_PAUSING ||
	       s->state == SANDBOX_WAKING;
}

/* After a restart: nobody has talked to its VM yet. */
static void adopt(struct sandbox *s)
{
	if (s->state == SANDBOX_RUNNING)
		monitor_adopt(s);
	else if (s->state == SANDBOX_WAKING && !s->resuming && !s->restarting)
		restart_stalled_begin(s);
}

static enum node_reason why_it_ended(const struct sandbox *s)
{
	if (vm_group_out_of_memory(&s->node->groups, s->info.id))
		return NODE_OOM_HOST;
	return s->monitor.reason ? s->monitor.reason : NODE_VMM_CRASH;
}

static void found_vm(struct sandbox *s, const struct warden_cell *cell)
{
	switch ((enum warden_cell_state)cell->state) {
	case WARDEN_RUNNING:
		s->slot = cell->slot;
		slots_adopt(&s->node->slots, cell->slot);
		adopt(s);
		return;
	case WARDEN_EXITED:
	case WARDEN_STOPPING:
		sandbox_end(s, why_it_ended(s), "its VM has ended");
		return;
	case WARDEN_STARTING:
		return;
	}
}

/* Warden was asked to remove it and said that it was gone. */
static void remove_vm(struct sandbox *s)
{
	log_error("%s is paused and has a VM: it is removed", s->info.id);
	s->started = true;
	park(s);
}

static void found(struct node *n, const struct warden_cell *cell)
{
	struct sandbox *s = table_find(&n->table, cell->id);

	if (installation_is_other(&n->installation, cell->installation)) {
		n->reconcile.n_others_now++;
		memcpy(n->reconcile.other, cell->id, sizeof(n->reconcile.other));
	} else if (s) {
		s->seen = n->reconcile.number;
		absence_over(s);
		if (reconcile_wants_vm(s))
			found_vm(s, cell);
		else if (s->state == SANDBOX_PAUSED)
			remove_vm(s);
	} else if (cell->state != WARDEN_STOPPING && !base_builds(n, cell->id) &&
		   !grounds_builds(n, cell->id) &&
		   !quarantine_has(n, QUARANTINE_SANDBOX, cell->id)) {
		end_stray(n, cell);
	}
}

static void tell_others(struct reconcile *k)
{
	if (k->n_others_now != k->n_others && k->n_others_now > 0)
		log_warn("%zu VMs at warden, %s among them, are of another installation and left "
			 "alone: is data_dir right? Is another node at this warden?",
			 k->n_others_now, k->other);
	else if (k->n_others_now != k->n_others)
		log_info("no VM at warden is of another installation any more");
	k->n_others = k->n_others_now;
}

/* Those that were paused when node was started. */
static void park_all(struct node *n)
{
	list_each(struct sandbox, s, n->table.all)
		park_looked(s, s->seen == n->reconcile.number);
}

static void finish(struct node *n)
{
	struct reconcile *k = &n->reconcile;

	tell_others(k);
	absence_judge(n);
	/* the rows of what ended with the boot before are written first */
	installation_note_boot(&n->installation, n->journal);
	if (!k->complete)
		park_all(n);
	if (!k->complete)
		log_info("%zu sandboxes run, %zu VMs of nobody are ended",
			 n->table.in_state[SANDBOX_RUNNING], k->n_strays);
	k->complete = true;
	if (k->soon > 0)
		k->soon--;
	timer_start(&k->timer, k->soon > 0 ? RECONCILE_AGAIN_MS : RECONCILE_EVERY_MS);
	base_turn(n);
}

static void on_page(struct link_call *a, const struct link_reply *r)
{
	const struct err *err = r->err;
	const struct warden_reply *reply;
	struct node *n = CONTAINER_OF(a, struct node, reconcile.ask);
	char last[WARDEN_ID_MAX + 1] = "";
	uint32_t count;

	if (err) {
		log_error("look at warden's list: %s", err->msg);
		timer_start(&n->reconcile.timer, RECONCILE_AGAIN_MS);
		return;
	}
	reply = warden_reply_of(r);
	count = reply->count < WARDEN_LIST_MAX ? reply->count : WARDEN_LIST_MAX;
	for (uint32_t i = 0; i < count; i++) {
		struct warden_cell cell = reply->cells[i];

		cell.id[sizeof(cell.id) - 1] = '\0';
		cell.installation[sizeof(cell.installation) - 1] = '\0';
		memcpy(last, cell.id, sizeof(last));
		found(n, &cell);
	}
	if (count == WARDEN_LIST_MAX)
		ask_page(n, last);
	else
		finish(n);
}

static void ask_page(struct node *n, const char *after)
{
	struct warden_request rq = { .verb = WARDEN_LIST };

	snprintf(rq.id, sizeof(rq.id), "%s", after);
	warden_again(&n->warden, &n->reconcile.ask, &rq, 0, on_page);
}

void reconcile_now(struct node *n)
{
	timer_stop(&n->reconcile.timer);
	if (n->reconcile.ask.link)
		return;
	n->reconcile.number++;
	n->reconcile.n_others_now = 0;
	ask_page(n, "");
}

void reconcile_soon(struct node *n)
{
	n->reconcile.soon = 2;
	if (!n->reconcile.ask.link)
		timer_start(&n->reconcile.timer, RECONCILE_SOON_MS);
}

static void on_time(struct timer *t)
{
	reconcile_now(CONTAINER_OF(t, struct node, reconcile.timer));
}

void reconcile_open(struct node *n)
{
	timer_init(&n->reconcile.timer, n->loop, on_time);
}

void reconcile_close(struct node *n)
{
	timer_stop(&n->reconcile.timer);
	link_cancel(&n->reconcile.ask);
	while (n->reconcile.strays)
		stray_free(n->reconcile.strays);
}
