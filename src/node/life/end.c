/* end.c - the end of a sandbox, whoever wants it.
 *
 *	row: killing -> traffic ends -> doors closed -> STOP -> folder removed -> tombstone in
 *	     place of the row -> answer
 *
 * The folder of one that lost its VM is not removed: lost_disks.h.
 * It is never given up: whatever cannot be done now is tried again, by the next node if need be.
 */
#include "node/life/end.h"

#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/life/builder.h"
#include "node/life/monitor.h"
#include "node/node.h"
#include "node/life/pause.h"
#include "node/life/resume.h"
#include "node/life/restart_stalled.h"
#include "node/journal/row_file.h"
#include "node/life/requests.h"
#include "node/life/sandbox_row.h"
#include "node/life/snapshots.h"
#include "node/life/start.h"
#include "node/life/snapshot_take.h"
#include "node/life/step.h"
#include "node/life/vm_stop.h"
#include "node/life/deferred.h"

enum {
	END_ROW_AGAIN_MS = 1000,      /* the row could not be removed */
	DEADLINE_PAUSE_MS = 1000,     /* it could not be paused: how often to think of it */
	DEADLINE_LOOK_MS = 30 * 1000, /* the longest sleep: the loop's clock stops with the host */
};

struct kill_wait { /* who asked for its end and waits for it */
	struct door_asked *asked;
	struct kill_wait *next;
};

static void remove_files(struct sandbox *s);
static void remove_row(struct sandbox *s);

/* Whatever is under way for it. */
static void stop_all(struct sandbox *s)
{
	timer_stop(&s->timer);
	taking_lost(s);
	pause_cancel(s);
	resume_cancel(s);
	restart_stalled_cancel(s);
	monitor_forget(s);
	journal_write_cancel(&s->write);
	files_cancel(&s->files);
	if (s->disk >= 0)
		close(take_fd(&s->disk));
	files_opened_close(&s->below);
	slots_cancel(&s->slot_wait);
	link_cancel(&s->call);
	link_cancel(&s->ask);
	guest_sockets_cancel(&s->socket);
	network_cancel(s);
	restore_cancel(&s->restore);
	machine_close(&s->machine);
}

void sandbox_free(struct sandbox *s)
{
	struct kill_wait *k;

	stop_all(s);
	agent_identity_done(&s->identity);
	deferred_forget(s);
	while ((k = s->killers)) {
		s->killers = k->next;
		free(k);
	}
	idempotency_forget(s);
	tidy_forget(s);
	pools_freed(s);
	metrics_done(&s->record.metrics);
	events_done(&s->record.events);
	table_remove(&s->node->table, s);
	network_done(s);
	free(s->text);
	free(s->env);
	free(s->host);
	free(s);
}

/* --- the last steps ----------------------------------------------------------------------- */

static void answer_killers(struct sandbox *s)
{
	struct node_reply r = { .sandbox = sandbox_told(s) };
	struct kill_wait *k;

	while ((k = s->killers)) {
		s->killers = k->next;
		door_answer(k->asked, &r, (struct bytes){ 0 }, NULL, 0);
		free(k);
	}
}

static void on_row_again(struct timer *t)
{
	remove_row(CONTAINER_OF(t, struct sandbox, timer));
}

static void on_removed(struct journal_write *w, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);
	struct node *n = s->node;

	if (err) {
		log_error("%s: remove its row: %s; it is tried again", s->info.id, err->msg);
		timer_init(&s->timer, n->loop, on_row_again);
		timer_start(&s->timer, END_ROW_AGAIN_MS);
		return;
	}
	struct snapshot *made_of = s->snapshot;

	step("kill.row");
	answer_killers(s);
	step("kill.answer");
	if (s->info.reason == NODE_LOST) /* it may have been moved before somebody wanted it gone */
		sweep_disk_kept(n, made_of);
	sandbox_free(s);
	snapshot_release(made_of);
	creates_soon(n);
}

static void remove_row(struct sandbox *s)
{
	struct journal *j = s->node->journal;
	struct node_tombstone t;
	struct err err;
	int rc;

	if (ended_tombstone(s, &t))
		rc = journal_bury(j, &s->write, &t, on_removed, &err);
	else
		rc = journal_remove(j, &s->write, s->info.id, on_removed, &err);
	if (rc < 0)
		on_removed(&s->write, &err);
}

/* --- its folder --------------------------------------------------------------------------- */

static void on_files_again(struct timer *t)
{
	remove_files(CONTAINER_OF(t, struct sandbox, timer));
}

static void on_files_removed(struct files_call *c, struct files_opened *got, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, files);

	if (err) {
		log_error("%s: remove its folder: %s; it is tried again", s->info.id, err->msg);
		timer_init(&s->timer, s->node->loop, on_files_again);
		timer_start(&s->timer, END_ROW_AGAIN_MS);
		return;
	}
	step("kill.files");
	s->absent.seen_files = true;
	if (got->set_aside) {
		aside_add(s->node, LOST_SANDBOX, s->info.id, s->info.team);
		sweep_disk_kept(s->node, NULL); /* what is being listed is of before */
	}
	remove_row(s);
}

static int ask_to_remove(struct sandbox *s, struct err *err)
{
	AUTO(buf_done) struct buf row = BUF_SECRET(ROW_FILE_MAX + 1);
	struct files_order o;

	sandbox_files_order(s, FILES_REMOVE, &o);
	if (s->absent.keeps_disk && sandbox_describe_disk(s, &row, err) < 0)
		return -1;
	o.row = s->absent.keeps_disk ? (char *)row.ptr : NULL;
	return files_ask(s->node->files, &s->files, &o, on_files_removed, err);
}

static void remove_files(struct sandbox *s)
{
	struct files_opened none = FILES_NONE;
	struct err err;

	if (ask_to_remove(s, &err) < 0)
		on_files_removed(&s->files, &none, &err);
}

/* --- its VM ------------------------------------------------------------------------------- */

static void on_stopped(struct sandbox *s)
{
	if (s->started)
		step("kill.stop");
	remove_files(s);
}

static void stop_vm(struct sandbox *s)
{
	vm_leave_slot(s);
	if (s->started)
		step("kill.slot");
	vm_stop(s, on_stopped);
}

/* --- the beginning of the end ------------------------------------------------------------- */

static void on_killing(struct journal_write *w, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);

	if (err) /* then the next node would find it running without a VM, and remove it */
		log_error("%s: note its end: %s", s->info.id, err->msg);
	step("kill.journal");
	stop_vm(s);
}

static void let_go(struct sandbox *s)
{
	struct door_asked *pauser = pause_take_asked(s);
	struct err err;

	pools_leave(s);
	stop_all(s);
	idempotency_forget(s);
	table_disown(&s->node->table, s);
	requests_not_found(s->info.id, &err);
	if (pauser)
		door_refuse(pauser, &err);
	deferred_refuse_all(s, &err);
}

void sandbox_end(struct sandbox *s, enum node_reason reason, const char *why)
{
	struct node *n = s->node;
	struct builder *builder = TAKE(s->builder);
	bool was_owned = s->team; /* then its row says that it runs, or is paused */
	struct err err;
	int rc;

	log_info("%s ends: %s", s->info.id, why);
	let_go(s);
	sandbox_enter(&n->table, s, SANDBOX_ENDING);
	s->info.state = NODE_ENDING;
	if (was_owned && s->info.reason == NODE_ALIVE)
		n->figures.ended[reason]++;
	if (s->info.reason == NODE_ALIVE) { /* else the journal knows it already */
		s->info.reason = reason;
		s->info.ended_ns = clock_wall_ns();
	}
	/* what no client was told of goes, whatever the reason */
	s->absent.keeps_disk |= was_owned && s->info.reason == NODE_LOST;
	events_add(&s->record.events, EVENT_INFO, "ended", "Sandbox ends: %s", why);
	if (!was_owned) {
		stop_vm(s);
		if (builder)
			builder_lost(builder, why);
		return;
	}
	if (n->door)
		door_tell_gone(n->door, s->info.id, s->info.generation);
	/* The row of one that was ever paused is on the disk: it would come back with the power,
	 * after its files were removed. */
	if (s->info.generation > SANDBOX_FIRST_GENERATION)
		rc = sandbox_note_durable(s, &s->write, JOURNAL_KILLING, on_killing, &err);
	else
		rc = sandbox_note(s, &s->write, JOURNAL_KILLING, on_killing, &err);
	if (rc < 0)
		on_killing(&s->write, &err);
}

void sandbox_end_asked(struct sandbox *s, struct door_asked *asked, enum node_reason reason)
{
	struct kill_wait *k = calloc(1, sizeof(*k));
	struct err err;

	if (!k) {
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "kill %s", s->info.id);
		door_refuse(asked, &err);
		return;
	}
	k->asked = asked;
	k->next = s->killers;
	s->killers = k;
	s->absent.keeps_disk = false; /* somebody wants it gone */
	if (s->state != SANDBOX_ENDING)
		sandbox_end(s, reason, reason == NODE_EVICTED ? "ended by an operator" : "killed");
}

/* --- the deadline ------------------------------------------------------------------------- */

/* As far as is known. */
static bool has_vm(const struct sandbox *s)
{
	return s->node->reconcile.complete && !(s->info.flags & NODE_ABSENT);
}

static void on_deadline(struct timer *t)
{
	struct sandbox *s = CONTAINER_OF(t, struct sandbox, timer);

	if (lease_left_ns(&s->lease, lease_clock()) > 0) {
		sandbox_set_deadline(s);
	} else if (!(s->info.flags & NODE_AUTO_PAUSE)) {
		sandbox_end(s, s->monitor.disk_full ? NODE_DISK_FULL : NODE_LIFETIME,
			    "its time is over");
	} else if (clock_wall_ns() >= s->pause_after_ns && !s->node->stopping && has_vm(s)) {
		log_info("%s is paused: its time is over", s->info.id);
		pause_begin(s, NULL, !(s->info.flags & NODE_NO_MEMORY));
	} else {
		timer_start(&s->timer, DEADLINE_PAUSE_MS);
	}
}

void sandbox_set_deadline(struct sandbox *s)
{
	struct lease_now now = lease_clock();

	if (s->info.flags & NODE_BUILDER)
		return;
	uint64_t ms = (lease_left_ns(&s->lease, now) + NSEC_PER_MSEC - 1) / NSEC_PER_MSEC;

	s->info.end_ns = lease_end_shown(&s->lease, now, s->info.end_ns);
	timer_stop(&s->timer);
	timer_init(&s->timer, s->node->loop, on_deadline);
	timer_start(&s->timer, ms < DEADLINE_LOOK_MS ? ms : DEADLINE_LOOK_MS);
}
