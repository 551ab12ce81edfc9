/* slots.c - making slots, opening their doors, and opening them again when egress forgot. */
#include "node/network/slots.h"

#include <assert.h>

#include "base/list.h"
#include "base/log.h"

struct slot_work { /* one slot on its way */
	struct slots *slots;
	enum slot_work_kind kind;
	struct link_call call;
	struct link_call open;
	struct link_call drop;
	uint32_t slot;
	struct slot_work *next, **prev;
};

static void turn(struct slots *s);

static struct slot_work *work_add(struct slots *s, enum slot_work_kind kind, uint32_t slot)
{
	struct slot_work *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->slots = s;
	w->kind = kind;
	w->slot = slot;
	list_add(&s->works, w);
	s->n_works[kind]++;
	return w;
}

static void work_free(struct slot_work *w)
{
	struct slots *s = w->slots;

	link_cancel(&w->call);
	link_cancel(&w->open);
	link_cancel(&w->drop);
	list_remove(w);
	s->n_works[w->kind]--;
	free(w);
}

/* --- giving up ---------------------------------------------------------------------------- */

static void on_dropped(struct link_call *a, const struct link_reply *r)
{
	const struct err *err = r->err;
	if (err)
		log_debug("drop a slot: %s", err->msg);
	work_free(CONTAINER_OF(a, struct slot_work, drop));
}

/* Asked once: a warden that is gone took the slot along. */
void slots_drop(struct slots *s, uint32_t slot)
{
	const struct warden_request rq = { .verb = WARDEN_SLOT_DROP, .slot = slot };
	struct slot_work *w;

	s->use[slot] = SLOT_NOT_OURS;
	egress_close_doors(s->egress, slot);
	w = s->warden->link.up ? work_add(s, SLOT_DROPPING, slot) : NULL;
	if (w)
		warden_again(s->warden, &w->drop, &rq, WARDEN_CALL_MS, on_dropped);
}

static void lose_doors(struct slots *s, uint32_t slot)
{
	s->use[slot] = SLOT_LOST_DOORS;
	if (slot < s->next_lost)
		s->next_lost = slot;
}

static void work_fail(struct slot_work *w, const struct err *err)
{
	struct slots *s = w->slots;
	enum slot_work_kind kind = w->kind;
	uint32_t slot = w->slot;

	if (err->code != ERR_UNAVAILABLE)
		log_error("slot: %s", err->msg);
	work_free(w);
	if (kind == SLOT_OPENING && err->code == ERR_UNAVAILABLE)
		lose_doors(s, slot);
	else if (kind == SLOT_MAKING && slot != WARDEN_NO_SLOT)
		slots_drop(s, slot);
	timer_start(&s->again, SLOTS_AGAIN_MS);
}

/* --- ready -------------------------------------------------------------------------------- */

static void give(struct slots *s, uint32_t slot)
{
	struct slot_wait *w = s->first;

	if (w) {
		slots_cancel(w);
		s->use[slot] = SLOT_IN_USE;
		w->on_slot(w, slot);
	} else if (s->n_ready < SLOTS_READY_LIMIT) {
		s->ready[s->n_ready++] = slot;
	} else {
		slots_drop(s, slot);
	}
}

static void work_done(struct slot_work *w)
{
	struct slots *s = w->slots;
	enum slot_work_kind kind = w->kind;
	uint32_t slot = w->slot;

	work_free(w);
	if (kind == SLOT_MAKING)
		give(s, slot);
	else if (kind == SLOT_OPENING && s->on_reopened)
		s->on_reopened(s, slot);
	turn(s);
}

/* --- doors -------------------------------------------------------------------------------- */

static void on_opened(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct slot_work *w = CONTAINER_OF(c, struct slot_work, open);

	if (err)
		work_fail(w, err);
	else
		work_done(w);
}

static void on_doors(struct link_call *c, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct slot_work *w = CONTAINER_OF(c, struct slot_work, call);
	struct egress_asked open = { .verb = EGRESS_OPEN, .slot = w->slot };
	struct err err;

	if (failed) {
		work_fail(w, failed);
		return;
	}
	if (r->n_fds != EGRESS_DOORS) {
		err_set(&err, ERR_INTERNAL, 0, "warden sent %zu doors", r->n_fds);
		work_fail(w, &err);
		return;
	}
	while (open.n_fds < EGRESS_DOORS) {
		open.fds[open.n_fds] = take_fd(&r->fds[open.n_fds]);
		open.n_fds++;
	}
	if (egress_ask(w->slots->egress, &w->open, &open, on_opened, &err) < 0)
		work_fail(w, &err);
}

static void ask_doors(struct slot_work *w)
{
	const struct warden_request rq = { .verb = WARDEN_DOORS, .slot = w->slot };
	struct err err;

	if (!link_exists(w->slots->egress))
		work_done(w);
	else if (warden_once(w->slots->warden, &w->call, &rq, on_doors, &err) < 0)
		work_fail(w, &err);
}

static void on_made(struct link_call *c, const struct link_reply *r)
{
	const struct err *failed = r->err;
	struct slot_work *w = CONTAINER_OF(c, struct slot_work, call);
	struct err err;

	if (failed) {
		work_fail(w, failed);
	} else if (warden_reply_of(r)->slot >= SLOTS_NUMBERS_MAX) {
		err_set(&err, ERR_INTERNAL, 0, "warden made slot %u", warden_reply_of(r)->slot);
		work_fail(w, &err);
	} else {
		w->slot = warden_reply_of(r)->slot;
		ask_doors(w);
	}
}

/* --- what is to be done ------------------------------------------------------------------- */

static void make_one(struct slots *s)
{
	const struct warden_request rq = { .verb = WARDEN_SLOT_MAKE };
	struct slot_work *w = work_add(s, SLOT_MAKING, WARDEN_NO_SLOT);
	struct err err;

	if (w && warden_once(s->warden, &w->call, &rq, on_made, &err) < 0)
		work_fail(w, &err);
}

static void open_lost(struct slots *s)
{
	for (; s->next_lost < SLOTS_NUMBERS_MAX && s->n_works[SLOT_OPENING] < SLOTS_AT_ONCE_MAX;
	     s->next_lost++) {
		struct slot_work *w;

		if (s->use[s->next_lost] != SLOT_LOST_DOORS)
			continue;
		s->use[s->next_lost] = SLOT_IN_USE;
		w = work_add(s, SLOT_OPENING, s->next_lost);
		if (!w)
			return;
		ask_doors(w);
	}
}

static void turn(struct slots *s)
{
	size_t lack = s->wanted + s->n_waiting;

	if (s->closed || !s->warden->link.up || !s->egress->up || s->again.active)
		return;
	open_lost(s);
	while (s->n_ready + s->n_works[SLOT_MAKING] < lack &&
	       s->n_works[SLOT_MAKING] < SLOTS_AT_ONCE_MAX && !s->again.active)
		make_one(s);
}

static void on_again(struct timer *t)
{
	turn(CONTAINER_OF(t, struct slots, again));
}

void slots_open(struct slots *s, struct loop *l, struct warden_client *w, struct link *e,
		size_t wanted)
{
	*s = (struct slots){ .warden = w, .egress = e, .wanted = wanted };
	queue_init(s);
	timer_init(&s->again, l, on_again);
}

void slots_close(struct slots *s)
{
	s->closed = true;
	timer_stop(&s->again);
	while (s->works)
		work_free(s->works);
	while (s->first)
		slots_cancel(s->first);
}

void slots_links_changed(struct slots *s)
{
	turn(s);
}

/* Slots that no VM has are gone with warden; egress must not keep their networks alive. */
void slots_warden_down(struct slots *s)
{
	while (s->n_ready > 0)
		egress_close_doors(s->egress, s->ready[--s->n_ready]);
}

void slots_egress_down(struct slots *s)
{
	while (s->n_ready > 0)
		slots_drop(s, s->ready[--s->n_ready]);
	for (size_t i = 0; i < SLOTS_NUMBERS_MAX; i++)
		if (s->use[i] == SLOT_IN_USE)
			s->use[i] = SLOT_LOST_DOORS;
	s->next_lost = 0;
}

/* --- taken and left ----------------------------------------------------------------------- */

void slots_take(struct slots *s, struct slot_wait *w, slot_fn *on_slot)
{
	assert(!w->slots);
	*w = (struct slot_wait){ .on_slot = on_slot };
	if (s->n_ready > 0) {
		uint32_t slot = s->ready[--s->n_ready];

		s->use[slot] = SLOT_IN_USE;
		turn(s);
		on_slot(w, slot);
		return;
	}
	w->slots = s;
	queue_add(s, w);
	s->n_waiting++;
	turn(s);
}

void slots_cancel(struct slot_wait *w)
{
	struct slots *s = w->slots;

	if (!s)
		return;
	queue_remove(s, w);
	s->n_waiting--;
	w->slots = NULL;
}

void slots_adopt(struct slots *s, uint32_t slot)
{
	if (slot >= SLOTS_NUMBERS_MAX || s->use[slot] != SLOT_NOT_OURS)
		return;
	lose_doors(s, slot);
	turn(s);
}

void slots_leave(struct slots *s, uint32_t slot)
{
	if (slot >= SLOTS_NUMBERS_MAX || s->use[slot] == SLOT_NOT_OURS)
		return;
	list_each(struct slot_work, w, s->works) {
		if (w->kind == SLOT_OPENING && w->slot == slot)
			work_free(w); /* its doors must not come after those of the next */
	}
	s->use[slot] = SLOT_NOT_OURS;
	egress_close_doors(s->egress, slot);
}
