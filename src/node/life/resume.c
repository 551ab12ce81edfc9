/* resume.c - what a resume does differently from a create; start.c has what they share. */
#include "node/life/resume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/life/admission.h"
#include "node/life/apply.h"
#include "node/life/built_in.h"
#include "node/life/create_text.h"
#include "node/life/end.h"
#include "node/life/monitor.h"
#include "node/life/park.h"
#include "node/node.h"
#include "node/life/restart_stalled.h"
#include "node/life/sandbox_row.h"
#include "node/life/start.h"
#include "node/life/step.h"
#include "node/life/deferred.h"

struct resuming {
	struct sandbox *sandbox;
	uint32_t timeout_s;
	bool memory; /* false: it boots from its disk */
	struct turn turn;
	struct timer late; /* until it is loaded; before that, how often links are looked at */
	struct files_opened got;
	struct files_call disk; /* its disk is read, beside all else */
	struct apply apply;
	bool applied;      /* its pages are */
	struct err failed; /* why it fails, while its disk is still read */
	struct agent_identity identity;
	struct manifest_facts *here; /* of one that boots: on what; NULL: it does not */
	bool loaded;                 /* no longer among node's n_resuming */
	uint64_t mib;                /* of node's resuming_mib, until then */
	uint64_t asked_ns;
	uint64_t links_until_ms; /* by the loop's clock */
};

static void count_loaded(struct sandbox *s, struct resuming *r)
{
	if (r->loaded)
		return;
	r->loaded = true;
	s->node->n_resuming--;
	s->node->resuming_mib -= r->mib;
	memory_watch_now(&s->node->memory); /* what it took is in the measure from here on */
}

void resume_cancel(struct sandbox *s)
{
	struct resuming *r = TAKE(s->resuming);

	if (!r)
		return;
	count_loaded(s, r);
	turn_leave(&r->turn);
	timer_stop(&r->late);
	files_cancel(&r->disk);
	apply_cancel(&r->apply);
	files_opened_close(&r->got);
	agent_identity_done(&r->identity);
	free(r->here);
	free(r);
}

/* --- who it is ---------------------------------------------------------------------------- */

static int give_env(const struct sandbox *s, struct agent_identity *id, struct err *err)
{
	if (!s->env)
		return 0;
	return json_decode(bytes_str(s->env), NODE_TEXT_MAX, CREATE_TEXT_DEPTH, &id->env, err);
}

int resume_identity(const struct sandbox *s, bool resume, struct agent_identity *ret,
		    struct err *err)
{
	const struct node_sandbox told = sandbox_told(s);

	if (agent_identity_make(ret, bytes_str(s->info.id), bytes_str(told.template_id), err) < 0)
		return -1;
	ret->resume = resume;
	snprintf(ret->control_token, sizeof(ret->control_token), "%s", s->control_token);
	snprintf(ret->access_token, sizeof(ret->access_token), "%s", s->info.access_token);
	if (s->machine_id[0])
		snprintf(ret->machine_id, sizeof(ret->machine_id), "%.*s",
			 (int)sizeof(ret->machine_id) - 1, s->machine_id);
	if (resume && s->boot_id[0])
		snprintf(ret->boot_id, sizeof(ret->boot_id), "%.*s", (int)sizeof(ret->boot_id) - 1,
			 s->boot_id);
	if (!resume && (give_env(s, ret, err) < 0 || built_in_tell(s->snapshot, ret, err) < 0)) {
		agent_identity_done(ret);
		return -1;
	}
	return 0;
}

/* --- it could not be ---------------------------------------------------------------------- */

/* Whoever wanted it is told; what else is asked of it is asked again. */
static void refuse_waiting(struct sandbox *s, const struct err *why)
{
	struct err err = *why;

	/* of a file or a template, not of the sandbox: it is there */
	if (err.code == ERR_NOT_FOUND || err.code == ERR_EXISTS)
		err.code = ERR_INTERNAL;
	deferred_refuse(s, NODE_CONNECT, &err);
	deferred_refuse(s, NODE_RESUME, &err);
	deferred_refuse(s, NODE_SOCKETS, &err);
}

static void on_paused_at_least(struct journal_write *w, const struct err *err)
{
	if (err)
		log_error("%s: note that it is paused: %s",
			  CONTAINER_OF(w, struct sandbox, write)->info.id, err->msg);
}

/* Where there is no room for its description, which the next node writes, its row says so alone. */
static void on_paused_again(struct journal_write *w, const struct err *failed)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);
	struct err err;

	if (!failed)
		return;
	on_paused_at_least(w, failed);
	if (sandbox_note(s, w, JOURNAL_PAUSED, on_paused_at_least, &err) < 0)
		on_paused_at_least(w, &err);
}

/* A row that says "waking" is being written, and would be lost to the next node. */
static void note_paused(struct sandbox *s)
{
	struct err err;

	journal_write_cancel(&s->write);
	if (sandbox_note_durable(s, &s->write, JOURNAL_PAUSED, on_paused_again, &err) < 0)
		on_paused_again(&s->write, &err);
}

void resume_failed(struct sandbox *s, const struct err *why)
{
	struct resuming *r = s->resuming;

	files_cancel(&s->files);
	slots_cancel(&s->slot_wait);
	link_cancel(&s->call);
	link_cancel(&s->ask);
	guest_sockets_cancel(&s->socket);
	restore_cancel(&s->restore);
	network_cancel(s);
	if (r->disk.job) { /* a QEMU that cannot open a damaged disk says something else of it */
		timer_stop(&r->late);
		apply_cancel(&r->apply);
		r->failed = *why;
		return;
	}
	s->node->figures.resumes_failed++;
	log_warn("%s is not resumed, %s: %s", s->info.id, sandbox_state_name(s->state), why->msg);
	if (s->state == SANDBOX_WAKING && r->memory) {
		restart_stalled_begin(s); /* it may have run: there is no way back */
		return;
	}
	s->info.end_ns = s->info.ended_ns;
	if (s->write.journal)
		note_paused(s);
	resume_cancel(s);
	refuse_waiting(s, why);
	park(s);
}

static void fail(struct resuming *r, const struct err *why)
{
	resume_failed(r->sandbox, why);
}

static void on_late(struct timer *t)
{
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "not resumed in %d seconds", RESUME_MS / 1000);
	fail(CONTAINER_OF(t, struct resuming, late), &err);
}

/* --- it runs ------------------------------------------------------------------------------ */

static uint64_t after_us(const struct sandbox *s, const char *step)
{
	return steps_find(&s->machine.steps, step) / 1000;
}

/* Its times; after a restart of node it is not known when it was asked for. */
static void log_resumed(const struct sandbox *s)
{
	const struct resuming *r = s->resuming;

	log_info("%s is resumed%s: started after %" PRIu64 " us, applied %" PRIu64
		 ", loaded %" PRIu64 ", cont %" PRIu64 ", identity %" PRIu64 ", noted %" PRIu64,
		 s->info.id, r && !r->memory ? " from its disk" : "", after_us(s, "started"),
		 after_us(s, "applied"), after_us(s, "loaded"), after_us(s, "cont"),
		 after_us(s, "identity"), r ? (clock_mono_ns() - r->asked_ns) / 1000 : 0);
}

static void on_noted(struct journal_write *w, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);
	struct node *n = s->node;
	struct files_order o;
	struct err mine;

	if (err) /* the next node finds the row "waking" and the VM, which comes to the same */
		log_error("%s: note that it runs: %s", s->info.id, err->msg);
	events_add(&s->record.events, EVENT_INFO, "resumed", "Sandbox resumed");
	step("resume.row");
	sandbox_enter(&n->table, s, SANDBOX_RUNNING);
	s->seen = n->reconcile.number;
	sandbox_set_deadline(s);
	log_resumed(s);
	if (s->resuming)
		figures_took(&n->figures.resume, s->resuming->asked_ns);
	resume_cancel(s);
	sandbox_files_order(s, FILES_RUNS, &o);
	if (files_ask(n->files, NULL, &o, NULL, &mine) < 0)
		log_error("%s: %s", s->info.id, mine.msg);
	deferred_resumed(s);
	step("resume.answer");
	deferred_serve(s);
	creates_soon(n);
}

void resume_woken(struct sandbox *s)
{
	struct lease_now now = lease_clock();
	struct err err;

	step("resume.identity");
	monitor_keep(s);
	s->saved_bytes = 0;
	s->pages_crc = s->state_crc = s->disk_crc = 0;
	s->info.state = NODE_RUNNING;
	s->info.ended_ns = 0;
	if (s->resuming) /* else its row said until when, before node was restarted */
		lease_begin(&s->lease, now, s->resuming->timeout_s);
	s->info.end_ns = lease_end_wall(&s->lease, now);
	s->pause_after_ns = 0;
	if (s->resuming && !s->resuming->memory)
		snprintf(s->boot_id, sizeof(s->boot_id), "%s", s->resuming->identity.boot_id);
	table_restarted(&s->node->table, s, now.wall_ns);
	if (sandbox_note(s, &s->write, JOURNAL_RUNNING, on_noted, &err) < 0)
		on_noted(&s->write, &err);
}

/* --- it is loaded ------------------------------------------------------------------------- */

static void on_waking(struct journal_write *w, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);

	if (err) {
		resume_failed(s, err);
		return;
	}
	step("resume.waking");
	count_loaded(s, s->resuming);
	sandbox_enter(&s->node->table, s, SANDBOX_WAKING);
	s->seen = s->node->reconcile.number;
	restore_go(&s->restore);
}

/* Before it runs, a row says that its saved memory is of no use any more, and none says the sum of
 * its disk. One that boots is still paused if it fails: its disk is all it needs. Rules that are
 * refused leave its network closed. */
static void on_ruled(struct sandbox *s, const struct err *refused)
{
	enum journal_state state = s->resuming->memory ? JOURNAL_WAKING : JOURNAL_PAUSED;
	struct err err;

	(void)refused;
	if (!s->resuming->memory && s->saved_bytes == 0 && s->disk_crc == 0) {
		on_waking(&s->write, NULL);
		return;
	}
	if (!s->resuming->memory) {
		s->saved_bytes = 0;
		s->disk_crc = 0;
	}
	if (sandbox_note_durable(s, &s->write, state, on_waking, &err) < 0)
		on_waking(&s->write, &err);
}

/* Network rules are told before the guest runs: its processes find the network as it was. */
void resume_held(struct sandbox *s)
{
	struct lease_now now = lease_clock();

	timer_stop(&s->resuming->late);
	lease_begin(&s->lease, now, s->resuming->timeout_s);
	s->info.end_ns = lease_end_wall(&s->lease, now);
	if (s->resuming->here) {
		free(s->host);
		s->host = TAKE(s->resuming->here);
	}
	network_wait(s, on_ruled);
}

/* What the copier calls invalid is no fault of whoever wants the sandbox. */
static void fail_apply(struct resuming *r, const struct err *failed, const struct copier_reply *ret)
{
	const struct sandbox *s = r->sandbox;
	struct err err;

	if (!failed) {
		err_set(&err, ERR_INTERNAL, 0, "the saved memory is damaged: CRC %08x, not %08x",
			ret->pages_crc, s->pages_crc);
	} else {
		err = *failed;
		if (err.code == ERR_INVALID) {
			err_wrap(&err, "the saved memory is damaged");
			err.code = ERR_INTERNAL;
		}
	}
	unloaded_note(s->node, LOST_SANDBOX, s->info.id, &err);
	fail(r, &err);
}

/* QEMU may write its disk as soon as it has loaded: not before that is known to be whole. */
static void load_state(struct resuming *r)
{
	if (r->applied && !r->disk.job)
		restore_applied(&r->sandbox->restore);
}

static void on_disk(struct files_call *c, struct files_opened *got, const struct err *err)
{
	struct resuming *r = CONTAINER_OF(c, struct resuming, disk);
	struct err failed = err ? *err : r->failed;

	(void)got;
	if (err)
		unloaded_note(r->sandbox->node, LOST_SANDBOX, r->sandbox->info.id, err);
	if (failed.code)
		fail(r, &failed);
	else
		load_state(r);
}

/* With its memory, the disk is read while QEMU starts and its pages are applied. */
static int read_disk(struct resuming *r, struct err *err)
{
	struct sandbox *s = r->sandbox;
	struct files_order o;

	if (!r->memory || s->disk_crc == 0)
		return 0;
	sandbox_files_order(s, FILES_DISK, &o);
	o.disk_crc = s->disk_crc;
	return files_ask(s->node->files, &r->disk, &o, on_disk, err);
}

static void on_applied(struct apply *a, const struct copier_reply *ret, const struct err *failed)
{
	struct resuming *r = CONTAINER_OF(a, struct resuming, apply);
	struct sandbox *s = r->sandbox;

	if (failed || ret->pages_crc != s->pages_crc) {
		fail_apply(r, failed, ret);
	} else {
		unloaded_note(s->node, LOST_SANDBOX, s->info.id, NULL);
		step("resume.applied");
		r->applied = true;
		load_state(r);
	}
}

void resume_apply(struct sandbox *s)
{
	struct resuming *r = s->resuming;
	struct err err;

	const struct apply_spec spec = { .id = s->info.id,
					 .pages = take_fd(&r->got.pages),
					 .memory = take_fd(&r->got.memory),
					 .base_crc = sandbox_base_crc(s) };

	if (apply_start(&r->apply, s->node->loop, &s->node->warden, &spec, on_applied, &err) < 0)
		fail(r, &err);
}

/* --- what start.c wants to know ----------------------------------------------------------- */

size_t resume_fds(struct sandbox *s, int *fds, uint32_t *ret_flags)
{
	struct resuming *r = s->resuming;

	fds[WARDEN_FD_OVERLAY] = take_fd(&r->got.disk);
	*ret_flags = r->memory ? 0 : (uint32_t)WARDEN_BOOT;
	if (s->snapshot || s->blank) {
		int memory = fcntl(r->got.memory, F_DUPFD_CLOEXEC, 0); /* its pages come later */
		size_t n = 1 + files_opened_give(&r->got, fds + 1);

		r->got.memory = memory;
		return n;
	}
	if (!r->memory)
		return 1;
	fds[WARDEN_FD_STATE] = take_fd(&r->got.state);
	return 2;
}

void resume_spec(const struct sandbox *s, struct restore_spec *spec)
{
	spec->identity = &s->resuming->identity;
	spec->hold = true;
	spec->apply = s->resuming->memory;
	spec->boot = !s->resuming->memory;
}

/* --- the beginning ------------------------------------------------------------------------ */

static void on_files(struct files_call *c, struct files_opened *got, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(c, struct sandbox, files);
	struct resuming *r = s->resuming;
	struct err failed;

	base_learn(s->node, s->base_id, got);
	unloaded_note(s->node, LOST_SANDBOX, s->info.id, err);
	if (err) {
		fail(r, err);
		return;
	}
	s->base_sums = got->base_sums; /* it had none: of a row of before */
	r->got = *got;
	*got = FILES_NONE;
	if (s->snapshot && !s->blank)
		s->snapshot->verified = true;
	if (read_disk(r, &failed) < 0)
		fail(r, &failed);
	else
		start_take_slot(s);
}

static void load_files(struct resuming *r)
{
	struct sandbox *s = r->sandbox;
	struct files_order o;
	struct err err;

	timer_init(&r->late, s->node->loop, on_late);
	timer_start(&r->late, RESUME_MS);
	sandbox_files_order(s, FILES_LOAD, &o);
	o.memory = r->memory;
	o.state_crc = s->state_crc;
	o.disk_crc = s->disk_crc;
	base_facts_sized(s->node, s->info.vcpus, s->info.memory_mib, &o.here);
	if (r->here)
		*r->here = o.here;
	s->facts = s->node->warden.facts_number;
	if (files_ask(s->node->files, &s->files, &o, on_files, &err) < 0)
		fail(r, &err);
}

/* Without both daemons there is no slot, and nobody knows whether its memory fits this host. */
static void wait_for_links(struct timer *t)
{
	struct resuming *r = CONTAINER_OF(t, struct resuming, late);
	struct node *n = r->sandbox->node;
	struct err err;

	if (node_links_up(n)) {
		load_files(r);
	} else if (loop_now_ms(n->loop) >= r->links_until_ms) {
		node_links_why(n, &err);
		fail(r, &err);
	} else {
		timer_start(&r->late, RESUME_LOOK_MS);
	}
}

static void on_turn(struct turn *t)
{
	struct resuming *r = CONTAINER_OF(t, struct resuming, turn);

	timer_init(&r->late, r->sandbox->node->loop, wait_for_links);
	r->links_until_ms = loop_now_ms(r->sandbox->node->loop) + RESUME_LINK_MS;
	wait_for_links(&r->late);
}

void resume_join(struct sandbox *s, uint32_t timeout_s)
{
	struct resuming *r = s->resuming;

	if (r && timeout_s > r->timeout_s)
		r->timeout_s = timeout_s;
}

int resume_begin(struct sandbox *s, uint32_t timeout_s, bool memory, struct err *err)
{
	struct node *n = s->node;
	struct resuming *r;
	uint64_t mib;

	memory = memory && s->saved_bytes > 0;
	if (admission_resume(s, memory, &mib, err) < 0)
		return -1;
	r = calloc(1, sizeof(*r));
	if (!r)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "resume %s", s->info.id);
	*r = (struct resuming){ .sandbox = s,
				.timeout_s = timeout_s,
				.memory = memory,
				.mib = mib,
				.got = FILES_NONE,
				.asked_ns = clock_mono_ns() };
	r->here = r->memory ? NULL : calloc(1, sizeof(*r->here));
	if (!r->memory && !r->here)
		err_set(err, ERR_EXHAUSTED, ENOMEM, "resume %s", s->info.id);
	if ((!r->memory && !r->here) || resume_identity(s, r->memory, &r->identity, err) < 0) {
		free(r->here);
		free(r);
		return -1;
	}
	s->resuming = r;
	n->n_resuming++;
	n->resuming_mib += mib;
	s->machine = (struct machine){ 0 };
	steps_begin(&s->machine.steps);
	sandbox_enter(&n->table, s, SANDBOX_SLOT);
	turn_take(&n->resumes, &r->turn, on_turn);
	return 0;
}
