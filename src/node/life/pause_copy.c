/* pause_copy.c - as a pause, but for its end: the disk is copied too, and the sandbox goes on. */
/* #syscalls: close */
#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "node/life/monitor.h"
#include "node/life/pause_inside.h"
#include "node/life/resume.h"
#include "node/life/rouse.h"
#include "node/life/step.h"

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

/* --- its disk ----------------------------------------------------------------------------- */

void pause_copy_close(struct pausing *p)
{
	files_opened_close(&p->opened);
	if (p->disk)
		disk_copy_cancel(p->disk);
	free(TAKE(p->disk));
}

static void on_disk_begun(struct disk_copy *d, const struct err *err)
{
	struct pausing *p = d->owner;

	if (err) {
		pause_fail(p, err);
		return;
	}
	p->result.stopped_us = (clock_mono_ns() - p->stopped_ns) / 1000;
	step("snapshot.copied");
	network_learn(p->sandbox, NULL);
	go_on(p);
}

/* In the same stop, which does not last longer for a large disk: it is copied behind. */
void pause_copy_disk(struct pausing *p)
{
	struct err err;

	if (disk_copy_begin(p->disk, on_disk_begun, &err) < 0)
		pause_fail(p, &err);
}

static void on_disk_opened(struct disk_copy *d, const struct err *err)
{
	struct pausing *p = d->owner;

	if (err) {
		pause_fail(p, err);
		return;
	}
	close(take_fd(&p->opened.disk));
	pause_start_copier(p, &p->opened);
}

void pause_copy_open(struct pausing *p, struct files_opened *got)
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
		pause_fail(p, &err);
		return;
	}
	p->disk->owner = p;
}

int pause_for_copy(struct sandbox *s, struct taking *t, struct err *err)
{
	struct pausing *p = pause_start(s, err);

	if (!p)
		return -1;
	p->taking = t;
	return 0;
}
