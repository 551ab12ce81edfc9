/* pause.c - a sandbox is saved, or copied as it runs; and what happens when that fails. */
/* #syscalls: socketpair close */
#include "node/life/pause.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/life/end.h"
#include "node/life/monitor.h"
#include "node/life/park.h"
#include "node/life/requests.h"
#include "node/life/resume.h"
#include "node/life/restart_stalled.h"
#include "node/life/sandbox_row.h"
#include "node/life/snapshot_take.h"
#include "node/life/start.h"
#include "node/life/step.h"
#include "node/life/deferred.h"
#include "node/node.h"
#include "vm/disk_copy.h"
#include "vm/save.h"
#include "vm/thaw.h"

struct pausing {
	struct sandbox *sandbox;
	struct door_asked *asked; /* NULL: nobody, its time is over */
	bool memory, flush;       /* flush: its disk is written back besides */
	struct turn turn;
	struct timer link; /* until warden is there */
	uint64_t link_until_ms;
	struct files_call files;
	int control; /* our end of the copier's socket; -1: none */
	struct link_call call;
	struct guest_sockets sockets;
	struct save save;
	struct save_user save_user;
	struct save_result result;
	struct disk_copy *disk;     /* with `taking`, until its instant: then the taking's */
	struct files_opened opened; /* with `taking`, until the copier has them */
	struct taking *taking;      /* it is to be copied, and goes on. NULL: paused, or copied */
	int thaw_socket;            /* to let it go on; -1: none */
	struct thaw thaw;
	struct agent_identity identity; /* for the thaw */
	bool begun, copier;             /* the guest may stand still; it is there */
	bool synced, kept;              /* durable: its memory; its disk and its names */
	uint32_t disk_crc;              /* with `kept` */
	uint64_t end_ns, stopped_ns;
	uint64_t asked_ns, begun_ns, copier_ns, copied_ns, synced_ns, kept_ns; /* when */
};

static void start_copier(struct pausing *p, struct files_opened *got);
static void ask_sockets(struct pausing *p);

static struct pausing *of_save(struct save_user *u)
{
	return CONTAINER_OF(u, struct pausing, save_user);
}

/* --- its end ------------------------------------------------------------------------------ */

static void close_disk_copy(struct pausing *p)
{
	files_opened_close(&p->opened);
	if (p->disk)
		disk_copy_cancel(p->disk);
	free(TAKE(p->disk));
}

/* The copier ends when our end of its socket closes. */
static void over(struct pausing *p)
{
	turn_leave(&p->turn);
	timer_stop(&p->link);
	files_cancel(&p->files);
	link_cancel(&p->call);
	guest_sockets_cancel(&p->sockets);
	save_cancel(&p->save);
	thaw_cancel(&p->thaw);
	close_disk_copy(p);
	agent_identity_done(&p->identity);
	if (p->control >= 0)
		close(take_fd(&p->control));
	if (p->thaw_socket >= 0)
		close(take_fd(&p->thaw_socket));
	p->sandbox->pausing = NULL;
	free(p);
}

void pause_cancel(struct sandbox *s)
{
	struct taking *taking;
	struct err err;

	if (!s->pausing)
		return;
	taking = TAKE(s->pausing->taking);
	journal_write_cancel(&s->write);
	over(s->pausing);
	if (taking) {
		requests_not_found(s->info.id, &err);
		taking_failed(taking, &err);
	}
}

struct door_asked *pause_take_asked(struct sandbox *s)
{
	return s->pausing ? TAKE(s->pausing->asked) : NULL;
}

bool pause_waits(const struct sandbox *s)
{
	return s->pausing && !s->pausing->turn.has;
}

/* Only when the guest runs again: one of these files is the mark that tells the next node that the
 * guest may be frozen. */
static void drop_files(const struct sandbox *s)
{
	struct files_order o;
	struct err err;

	sandbox_files_order(s, FILES_RUNS, &o);
	if (files_ask(s->node->files, NULL, &o, NULL, &err) < 0)
		log_error("%s: %s", s->info.id, err.msg);
}

void pause_undone(struct sandbox *s)
{
	drop_files(s);
	sandbox_enter(&s->node->table, s, SANDBOX_RUNNING);
	s->seen = s->node->reconcile.number;
	sandbox_set_deadline(s);
	deferred_serve(s);
}

/* Of a copy: it goes on as after a pause that failed. */
static void copy_failed(struct pausing *p, const struct err *why)
{
	struct taking *taking = TAKE(p->taking);
	struct sandbox *s = p->sandbox;
	struct err err = *why;
	bool begun = p->begun;

	if (err.code == ERR_EXISTS || err.code == ERR_NOT_FOUND) /* of something else */
		err.code = ERR_INTERNAL;
	pause_cancel(s);
	if (begun)
		monitor_keep(s);
	taking_failed(taking, &err);
	if (begun)
		restart_stalled_begin(s);
	else
		pause_undone(s);
}

static void fail(struct pausing *p, const struct err *why)
{
	struct sandbox *s = p->sandbox;
	struct door_asked *asked = TAKE(p->asked);
	bool begun = p->begun;
	struct err err = *why;

	if (p->taking) {
		copy_failed(p, why);
		return;
	}

	if (err.code == ERR_EXISTS) /* of something else: it is not paused already */
		err.code = ERR_INTERNAL;
	files_name_room(s->node->files, &err); /* of QEMU, the copier, the journal */
	s->node->figures.pauses_failed++;
	log_warn("%s is not paused: %s", s->info.id, err.msg);
	events_add(&s->record.events, EVENT_WARN, "pause", "Sandbox not paused: %s", err.msg);
	if (begun)
		s->info.end_ns = p->end_ns;
	pause_cancel(s);
	if (begun)
		monitor_keep(s);
	s->saved_bytes = 0;
	s->disk_crc = 0;
	s->pause_after_ns = clock_wall_ns() + PAUSE_AGAIN_MS * NSEC_PER_MSEC;
	if (asked)
		door_refuse(asked, &err);
	deferred_refuse(s, NODE_PAUSE, &err);
	if (begun)
		restart_stalled_begin(s);
	else
		pause_undone(s);
}

void pause_left_over(struct sandbox *s)
{
	log_info("%s stands still: it goes on", s->info.id);
	timer_stop(&s->timer);
	s->marked = false;
	sandbox_enter(&s->node->table, s, SANDBOX_PAUSING);
	restart_stalled_begin(s);
}

/* --- paused: from files that are synced to a row that says so ----------------------------- */

static void answer(struct pausing *p)
{
	struct sandbox *s = p->sandbox;
	struct door_asked *asked = TAKE(p->asked);

	if (asked)
		door_answer(asked, &(struct node_reply){ .sandbox = sandbox_told(s) },
			    (struct bytes){ 0 }, NULL, 0);
	step("pause.answer");
}

static uint64_t after_us(const struct pausing *p, uint64_t ns)
{
	return (ns - p->asked_ns) / 1000;
}

/* Bytes that had to be copied, and that the files have; times since it was asked for. */
static void log_paused(const struct pausing *p)
{
	const struct save_result *r = &p->result;

	log_info("%s is paused: %" PRIu64 " bytes in %" PRIu64 ", stood still %" PRIu64
		 " us until copied, copier %" PRIu64 " us; begun after %" PRIu64
		 " us, copier there %" PRIu64 ", stop %" PRIu64 ", copied %" PRIu64
		 ", synced %" PRIu64 ", kept %" PRIu64 ", durable %" PRIu64,
		 p->sandbox->info.id, r->copied.pages * COPIER_PAGE + r->copied.state_bytes,
		 p->sandbox->saved_bytes, r->stopped_us, r->copied.took_us,
		 after_us(p, p->begun_ns), after_us(p, p->copier_ns),
		 after_us(p, p->copied_ns) - r->stopped_us, after_us(p, p->copied_ns),
		 after_us(p, p->synced_ns), after_us(p, p->kept_ns), after_us(p, clock_mono_ns()));
}

static void on_noted(struct journal_write *w, const struct err *err)
{
	struct sandbox *s = CONTAINER_OF(w, struct sandbox, write);
	struct pausing *p = s->pausing;

	if (err) {
		s->info.state = NODE_RUNNING;
		s->info.ended_ns = 0;
		s->info.generation--;
		fail(p, err);
		return;
	}
	events_add(&s->record.events, EVENT_INFO, "paused", "Sandbox paused");
	step("pause.row");
	figures_took(&s->node->figures.pause, p->asked_ns);
	log_paused(p);
	if (s->node->door)
		door_tell_gone(s->node->door, s->info.id, s->info.generation - 1);
	answer(p);
	over(p);
	machine_close(&s->machine);
	monitor_paused(s);
	park(s);
	deferred_serve(s);
}

/* All of it is on the disk. */
static void note(struct pausing *p)
{
	const struct copier_reply *r = &p->result.copied;
	struct sandbox *s = p->sandbox;
	struct err err;

	if (!p->synced || !p->kept || network_learns(s))
		return;
	s->pages_crc = p->memory ? r->pages_crc : 0;
	s->state_crc = p->memory ? r->state_crc : 0;
	s->saved_bytes = p->memory ? r->pages_bytes + r->state_bytes : 0;
	s->disk_crc = p->disk_crc;
	s->info.state = NODE_PAUSED;
	s->info.ended_ns = clock_wall_ns();
	s->info.end_ns = s->info.ended_ns;
	s->info.generation++; /* sockets of before reach nobody after */
	if (sandbox_note_durable(s, &s->write, JOURNAL_PAUSED, on_noted, &err) < 0)
		on_noted(&s->write, &err);
}

static void on_kept(struct files_call *c, struct files_opened *got, const struct err *failed)
{
	struct pausing *p = CONTAINER_OF(c, struct pausing, files);

	if (failed) {
		fail(p, failed);
		return;
	}
	step("pause.renamed");
	p->kept = true;
	p->disk_crc = got->disk_crc;
	p->kept_ns = clock_mono_ns();
	note(p);
}

static void on_learned(struct sandbox *s)
{
	if (s->pausing) /* else it failed meanwhile */
		note(s->pausing);
}

/* Names before contents: until a row says so nobody believes either. */
static bool keep(struct pausing *p)
{
	struct files_order o;
	struct err err;

	network_learn(p->sandbox, on_learned); /* it stands still: it asks for no more names */
	sandbox_files_order(p->sandbox, FILES_KEEP, &o);
	o.memory = p->memory;
	if (files_ask(p->sandbox->node->files, &p->files, &o, on_kept, &err) == 0)
		return true;
	fail(p, &err);
	return false;
}

static void synced(struct pausing *p)
{
	step("pause.synced");
	p->synced = true;
	p->synced_ns = clock_mono_ns();
	note(p);
}

/* --- copied: its disk in the same stop, then it goes on ----------------------------------- */

static void on_thawed(struct thaw *t, const struct err *err)
{
	struct pausing *p = CONTAINER_OF(t, struct pausing, thaw);
	struct taking *taking = TAKE(p->taking);
	struct disk_copy *disk = TAKE(p->disk);
	struct sandbox *s = p->sandbox;

	if (err)
		log_warn("%s does not go on after it was copied: %s", s->info.id, err->msg);
	log_info("%s was copied, stood still for %" PRIu64 " us at least", s->info.id,
		 p->result.stopped_us);
	events_add(&s->record.events, EVENT_INFO, "copied", "Sandbox copied");
	pause_cancel(s);
	monitor_keep(s);
	taking_copied(taking, s, disk);
	if (err)
		restart_stalled_begin(s);
	else
		pause_undone(s);
}

static void go_on(struct pausing *p)
{
	struct sandbox *s = p->sandbox;
	struct err err;

	save_cancel(&p->save); /* the copier ends; what it wrote is synced by the taking */
	if (resume_identity(s, true, &p->identity, &err) < 0 ||
	    thaw_start(&p->thaw,
		       &(struct thaw_spec){ &s->machine, &s->node->agent, take_fd(&p->thaw_socket),
					    &p->identity },
		       on_thawed, &err) < 0)
		on_thawed(&p->thaw, &err);
}

static void on_disk_begun(struct disk_copy *d, const struct err *err)
{
	struct pausing *p = d->owner;

	if (err) {
		fail(p, err);
		return;
	}
	p->result.stopped_us = (clock_mono_ns() - p->stopped_ns) / 1000;
	step("snapshot.copied");
	network_learn(p->sandbox, NULL);
	go_on(p);
}

/* In the same stop, which does not last longer for a large disk: it is copied behind. */
static void copy_disk(struct pausing *p)
{
	struct err err;

	if (disk_copy_begin(p->disk, on_disk_begun, &err) < 0)
		fail(p, &err);
}

static void on_disk_opened(struct disk_copy *d, const struct err *err)
{
	struct pausing *p = d->owner;

	if (err) {
		fail(p, err);
		return;
	}
	close(take_fd(&p->opened.disk));
	if (p->memory)
		start_copier(p, &p->opened);
	else
		ask_sockets(p);
}

static void open_disk_copy(struct pausing *p, struct files_opened *got)
{
	struct sandbox *s = p->sandbox;
	uint32_t layers = s->snapshot ? s->snapshot->row.layers : 0;
	struct err err;

	p->opened = *got;
	*got = FILES_NONE;
	p->disk = calloc(1, sizeof(*p->disk));
	if (!p->disk)
		err_set(&err, ERR_EXHAUSTED, ENOMEM, "copy a disk");
	if (!p->disk || disk_copy_open(p->disk, &s->machine, p->opened.disk, layers, on_disk_opened,
				       &err) < 0) {
		fail(p, &err);
		return;
	}
	p->disk->owner = p;
}

/* --- saving ------------------------------------------------------------------------------- */

static void on_copied(struct save_user *u, const struct save_result *r)
{
	struct pausing *p = of_save(u);

	p->stopped_ns = clock_mono_ns() - r->stopped_us * 1000;
	if (p->taking) {
		copy_disk(p);
		return;
	}
	step("pause.copied");
	p->copied_ns = clock_mono_ns();
	if (keep(p)) /* beside the copier, which syncs what it wrote */
		save_sync(&p->save);
}

static void on_saved(struct save_user *u, const struct save_result *r, const struct err *err)
{
	struct pausing *p = of_save(u);

	if (err) {
		fail(p, err);
		return;
	}
	p->result = *r;
	synced(p);
}

/* Whoever comes second, the copier or the beginning of the save. */
static void give_copier(struct pausing *p)
{
	if (p->begun && p->copier)
		save_copier(&p->save, take_fd(&p->control));
}

static void begin_save(struct pausing *p, int socket)
{
	static const struct save_user_ops ops = { on_copied, on_saved };
	struct sandbox *s = p->sandbox;
	const struct save_spec spec = { .user = &p->save_user,
					.agent = s->node->agent,
					.control_token = s->control_token,
					.save_file = WARDEN_SAVE_FILE,
					.base_crc = sandbox_base_crc(s),
					.must_freeze = p->taking,
					.flush = p->flush,
					.disk_only = !p->memory };
	struct err err;

	p->save_user.ops = &ops;
	p->begun = true;
	p->begun_ns = clock_mono_ns();
	p->end_ns = s->info.end_ns;
	if (save_start(&p->save, &s->machine, &spec, socket, &err) < 0)
		fail(p, &err);
	else
		give_copier(p);
}

static void on_sockets(struct guest_sockets *g, int *fds, const struct err *err)
{
	struct pausing *p = CONTAINER_OF(g, struct pausing, sockets);

	if (err) {
		fail(p, err);
	} else {
		if (p->taking)
			p->thaw_socket = take_fd(&fds[1]);
		begin_save(p, take_fd(&fds[0]));
	}
}

/* One to freeze it, and of a copy one ahead of time to let it go on. */
static void ask_sockets(struct pausing *p)
{
	struct sandbox *s = p->sandbox;

	guest_sockets_ask(&p->sockets, &s->node->warden, s->info.id, p->taking ? 2 : 1,
			  PAUSE_SOCKET_MS, on_sockets);
}

/* --- before it: files, a monitor, a copier ------------------------------------------------ */

static void on_copier(struct link_call *c, const struct link_reply *r)
{
	const struct err *err = r->err;
	struct pausing *p = CONTAINER_OF(c, struct pausing, call);

	if (err) {
		fail(p, err);
		return;
	}
	if (!p->taking)
		step("pause.copier");
	p->copier = true;
	p->copier_ns = clock_mono_ns();
	give_copier(p);
}

static void start_copier(struct pausing *p, struct files_opened *got)
{
	struct warden_request rq = { .verb = WARDEN_COPY };
	int ends[2], fds[COPIER_FDS];
	struct err err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0) {
		err_set(&err, ERR_EXHAUSTED, errno, "a socket for the copier");
		fail(p, &err);
		return;
	}
	p->control = ends[0];
	fds[COPIER_FD_CONTROL] = ends[1];
	fds[COPIER_FD_PAGES] = take_fd(&got->pages);
	fds[COPIER_FD_MEMORY] = take_fd(&got->memory);
	fds[COPIER_FD_STATE] = take_fd(&got->state);
	memcpy(rq.id, p->sandbox->info.id, sizeof(rq.id));
	if (warden_once_fds(&p->sandbox->node->warden, &p->call,
			    &(struct warden_asked){ &rq, fds, COPIER_FDS, WARDEN_CALL_MS },
			    on_copier, &err) < 0)
		fail(p, &err);
	else
		ask_sockets(p); /* beside it: a guest freezes slower than a copier starts */
}

static void on_files(struct files_call *c, struct files_opened *got, const struct err *err)
{
	struct pausing *p = CONTAINER_OF(c, struct pausing, files);

	base_learn(p->sandbox->node, p->sandbox->base_id, got);
	if (err)
		fail(p, err);
	else if (p->taking)
		open_disk_copy(p, got);
	else if (p->memory)
		start_copier(p, got);
	else
		ask_sockets(p);
}

static void open_files(struct pausing *p)
{
	struct files_order o;
	struct err err;

	if (p->taking)
		taking_order(p->taking, FILES_SNAP_OPEN, &o);
	else
		sandbox_files_order(p->sandbox, FILES_SAVE, &o);
	o.memory = p->memory;
	o.need_mib =
		p->memory ? vm_group_memory_mib(&p->sandbox->node->groups, p->sandbox->info.id) : 0;
	if (files_ask(p->sandbox->node->files, &p->files, &o, on_files, &err) < 0)
		fail(p, &err);
}

static void on_monitor(struct sandbox *s, const struct err *err)
{
	if (err)
		fail(s->pausing, err);
	else
		open_files(s->pausing);
}

static void want_monitor(struct pausing *p)
{
	struct err err;
	int there = monitor_want(p->sandbox, on_monitor, &err);

	if (there < 0)
		fail(p, &err);
	else if (there > 0)
		open_files(p);
}

static void wait_for_warden(struct timer *t)
{
	struct pausing *p = CONTAINER_OF(t, struct pausing, link);
	struct node *n = p->sandbox->node;
	struct err err;

	if (p->sandbox->copying) { /* an earlier copy of its disk is not whole yet */
		p->link_until_ms = loop_now_ms(n->loop) + PAUSE_LINK_MS;
		timer_start(&p->link, PAUSE_LOOK_MS);
	} else if (n->warden.link.up) {
		want_monitor(p);
	} else if (loop_now_ms(n->loop) >= p->link_until_ms) {
		node_links_why(n, &err);
		fail(p, &err);
	} else {
		timer_start(&p->link, PAUSE_LOOK_MS);
	}
}

static void on_turn(struct turn *t)
{
	struct pausing *p = CONTAINER_OF(t, struct pausing, turn);
	struct loop *l = p->sandbox->node->loop;
	struct err err;

	if (p->sandbox->monitor.disk_full) { /* its guest cannot write back what it holds */
		err_set(&err, ERR_NO_SPACE, 0, "the host's disk is full and the sandbox waits");
		files_name_room(p->sandbox->node->files, &err);
		fail(p, &err);
		return;
	}
	timer_init(&p->link, l, wait_for_warden);
	p->link_until_ms = loop_now_ms(l) + PAUSE_LINK_MS;
	wait_for_warden(&p->link);
}

static struct pausing *start(struct sandbox *s, struct err *err)
{
	struct pausing *p = calloc(1, sizeof(*p));

	if (!p) {
		err_set(err, ERR_EXHAUSTED, ENOMEM, "pause %s", s->info.id);
		return NULL;
	}
	*p = (struct pausing){ .sandbox = s,
			       .memory = true,
			       .control = -1,
			       .thaw_socket = -1,
			       .opened = FILES_NONE,
			       .asked_ns = clock_mono_ns() };
	p->copied_ns = p->copier_ns = p->asked_ns; /* without memory nothing is copied */
	s->pausing = p;
	timer_stop(&s->timer);
	sandbox_enter(&s->node->table, s, SANDBOX_PAUSING);
	turn_take(&s->node->saves, &p->turn, on_turn);
	return p;
}

void pause_begin(struct sandbox *s, struct door_asked *asked, bool memory)
{
	struct err err;
	struct pausing *p = start(s, &err);

	if (!p) {
		if (asked)
			door_refuse(asked, &err);
		return;
	}
	p->asked = asked;
	p->memory = memory;
	step("pause.asked");
}

int pause_for_copy(struct sandbox *s, struct taking *t, enum journal_kind kind, struct err *err)
{
	struct pausing *p = start(s, err);

	if (!p)
		return -1;
	p->taking = t;
	p->memory = kind != JOURNAL_STEP;
	p->flush = kind == JOURNAL_BUILD; /* others may boot from its disk */
	return 0;
}
