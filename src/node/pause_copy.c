/* pause_copy.c - as a pause, but for its end: the disk is copied too, and the sandbox goes on. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/monitor.h"
#include "node/pause_inside.h"
#include "node/resume.h"
#include "node/rouse.h"

/* Of a copy: it goes on as after a pause that failed. */
void pause_copy_failed(struct pausing *p, const struct err *why)
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
		rouse_begin(s);
	else
		pause_undone(s);
}

static void on_thawed(struct thaw *t, const struct err *err)
{
	struct pausing *p = CONTAINER_OF(t, struct pausing, thaw);
	struct sandbox *s = p->sandbox;

	if (err)
		log_warn("%s does not go on after it was copied: %s", s->info.id, err->msg);
	log_info("%s was copied, stood still for %" PRIu64 " us at least", s->info.id,
		 p->result.stopped_us);
	events_add(&s->record.events, EVENT_INFO, "copied", "Sandbox copied");
	pause_cancel(s);
	monitor_keep(s);
	if (err)
		rouse_begin(s);
	else
		pause_undone(s);
}

static void go_on(struct pausing *p)
{
	struct sandbox *s = p->sandbox;
	struct err err;

	save_cancel(&p->save); /* the copier ends; what it wrote is synced by the taking */
	if (resume_identity(s, true, &p->identity, &err) < 0 ||
	    thaw_start(&p->thaw, &s->machine, &s->node->agent, take_fd(&p->thaw_socket),
		       &p->identity, on_thawed, &err) < 0)
		on_thawed(&p->thaw, &err);
}

static void on_disk_copied(struct files_call *c, struct files_opened *got, const struct err *err)
{
	struct pausing *p = CONTAINER_OF(c, struct pausing, files);

	(void)got;
	if (err) {
		pause_fail(p, err);
		return;
	}
	p->result.stopped_us = (clock_mono_ns() - p->stopped_ns) / 1000;
	taking_copied(TAKE(p->taking));
	go_on(p);
}

/* In the same stop: QEMU wrote back what it held of it before it stopped. */
void pause_copy_disk(struct pausing *p)
{
	struct files_order o;
	struct err err;

	taking_order(p->taking, FILES_SNAP_DISK, &o);
	if (files_ask(p->sandbox->node->files, &p->files, &o, on_disk_copied, &err) < 0)
		pause_fail(p, &err);
}

int pause_for_copy(struct sandbox *s, struct taking *t, struct err *err)
{
	struct pausing *p = pause_start(s, err);

	if (!p)
		return -1;
	p->taking = t;
	return 0;
}
