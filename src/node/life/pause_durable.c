/* pause_durable.c - from files that are synced to a row that says "paused". */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/life/park.h"
#include "node/life/pause_inside.h"
#include "node/life/sandbox_row.h"
#include "node/life/start.h"
#include "node/life/step.h"
#include "node/life/waits.h"

static void answer(struct pausing *p)
{
	struct sandbox *s = p->sandbox;
	struct door_asked *asked = TAKE(p->asked);

	if (asked)
		door_answer(asked, &(struct node_reply){ .sandbox = s->info }, (struct bytes){ 0 },
			    NULL, 0);
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
		pause_fail(p, err);
		return;
	}
	events_add(&s->record.events, EVENT_INFO, "paused", "Sandbox paused");
	step("pause.row");
	log_paused(p);
	if (s->node->door)
		door_tell_gone(s->node->door, s->info.id, s->info.generation - 1);
	answer(p);
	pause_over(p);
	machine_close(&s->machine);
	monitor_paused(s);
	park(s);
	waits_serve(s);
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
		pause_fail(p, failed);
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
bool pause_keep(struct pausing *p)
{
	struct files_order o;
	struct err err;

	network_learn(p->sandbox, on_learned); /* it stands still: it asks for no more names */
	sandbox_files_order(p->sandbox, FILES_KEEP, &o);
	o.memory = p->memory;
	if (files_ask(p->sandbox->node->files, &p->files, &o, on_kept, &err) == 0)
		return true;
	pause_fail(p, &err);
	return false;
}

void pause_synced(struct pausing *p)
{
	step("pause.synced");
	p->synced = true;
	p->synced_ns = clock_mono_ns();
	note(p);
}
