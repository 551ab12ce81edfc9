/* disk_copy.c - one command after the other; what QEMU refuses is tidied up before it is told. */
#include "vm/disk_copy.h"

#include <assert.h>

#include "base/clock.h"

#define NODE      "copy" /* the names of what is added to QEMU, and of the job */
#define FILE_NODE "copy-file"

enum { FDSET = 100, CHUNK = 1024 * 1024 };

enum at { /* in the order in which they come */
	  OLD_CANCEL,
	  OLD_DISMISS,
	  OLD_LOOK,
	  OLD_DROP,
	  OLD_DROP_FILE,
	  OLD_FORGET,
	  PASS,
	  ADD_FILE,
	  ADD_NODE,
	  OPENED,
	  BACKUP,
	  BEGUN,
	  LOOK,
	  DISMISS,
	  STREAM,
	  LOOK_AGAIN,
	  DISMISS_AGAIN,
	  DROP,
	  DROP_FILE,
	  FORGET,
	  OVER,
};

static void go(struct disk_copy *d, enum at at);

static void finish(struct disk_copy *d, const struct err *err)
{
	timer_stop(&d->look);
	d->on_done(d, err);
}

/* --- what is asked ------------------------------------------------------------------------ */

static json_t *add_file(void)
{
	char name[32];

	snprintf(name, sizeof(name), "/dev/fdset/%d", FDSET);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:b}}", "driver", "file", "node-name",
			 FILE_NODE, "filename", name, "locking", "off", "discard", "unmap", "cache",
			 "no-flush", 1);
}

/* Whoever keeps the file syncs it: QEMU would stand still meanwhile, and the guest with it. */
static json_t *add_node(const struct disk_copy *d)
{
	char below[32];

	snprintf(below, sizeof(below), "layer%u", d->layers);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:{s:b}}", "driver", "qcow2", "node-name", NODE,
			 "file", FILE_NODE, "backing", below, "discard", "unmap", "cache",
			 "no-flush", 1);
}

static json_t *backup(void)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:{s:i, s:i}}", "job-id", NODE, "device",
			 "disk", "target", NODE, "sync", "top", "auto-dismiss", 0, "x-perf",
			 "max-workers", DISK_COPY_WORKERS, "max-chunk", CHUNK);
}

static json_t *stream(void)
{
	return json_pack("{s:s, s:s, s:s, s:b}", "job-id", NODE, "device", NODE, "base-node",
			 "layer0", "auto-dismiss", 0);
}

static const char *command_of(const struct disk_copy *d, enum at at, json_t **ret)
{
	static const char *const commands[] = {
		[OLD_CANCEL] = "job-cancel",  [OLD_DISMISS] = "job-dismiss",
		[OLD_DROP] = "blockdev-del",  [OLD_DROP_FILE] = "blockdev-del",
		[OLD_LOOK] = "query-jobs",    [OLD_FORGET] = "remove-fd",
		[ADD_FILE] = "blockdev-add",  [ADD_NODE] = "blockdev-add",
		[BACKUP] = "blockdev-backup", [LOOK] = "query-jobs",
		[DISMISS] = "job-dismiss",    [STREAM] = "block-stream",
		[LOOK_AGAIN] = "query-jobs",  [DISMISS_AGAIN] = "job-dismiss",
		[DROP] = "blockdev-del",      [DROP_FILE] = "blockdev-del",
		[FORGET] = "remove-fd",
	};
	const char *command = commands[at];

	if (at == ADD_FILE)
		*ret = add_file();
	else if (at == ADD_NODE)
		*ret = add_node(d);
	else if (at == BACKUP)
		*ret = backup();
	else if (at == STREAM)
		*ret = stream();
	else if (at == LOOK || at == LOOK_AGAIN || at == OLD_LOOK)
		*ret = NULL;
	else if (at == OLD_FORGET || at == FORGET)
		*ret = json_pack("{s:i}", "fdset-id", FDSET);
	else if (at == OLD_DROP || at == DROP)
		*ret = json_pack("{s:s}", "node-name", NODE);
	else if (at == OLD_DROP_FILE || at == DROP_FILE)
		*ret = json_pack("{s:s}", "node-name", FILE_NODE);
	else
		*ret = json_pack("{s:s}", "id", NODE);
	return command;
}

/* --- what is answered --------------------------------------------------------------------- */

/* Ours of all jobs; NULL: it is not there. */
static const json_t *find_job(const json_t *all)
{
	const json_t *one;
	size_t i;

	json_array_foreach(all, i, one)
	{
		const char *id = json_string_value(json_object_get(one, "id"));

		if (id && strcmp(id, NODE) == 0)
			return one;
	}
	return NULL;
}

/* QEMU has no other word for it. */
static bool is_full(struct bytes why)
{
	const struct bytes word = BYTES_LIT("No space left on device");

	return why.len >= word.len && memmem(why.ptr, why.len, word.ptr, word.len);
}

/* 1: it is over. 0: not yet. */
static int is_over(const json_t *all, struct err *err)
{
	const json_t *job = find_job(all);
	struct bytes status, why = { 0 };

	if (!job)
		return err_set(err, ERR_INTERNAL, 0, "copy a disk: QEMU's job is gone");
	if (json_want_string(job, "status", &status, err) < 0 ||
	    json_may_string(job, "error", &why, err) < 0)
		return -1;
	if (!bytes_eq(status, BYTES_LIT("concluded")))
		return 0;
	if (why.len > 0)
		return err_set(err, is_full(why) ? ERR_NO_SPACE : ERR_INTERNAL, 0,
			       "copy a disk: %.*s", (int)why.len, (const char *)why.ptr);
	return 1;
}

static void on_look(struct timer *t)
{
	struct disk_copy *d = CONTAINER_OF(t, struct disk_copy, look);

	go(d, (enum at)d->at);
}

static void again(struct disk_copy *d, uint64_t ms)
{
	timer_start(&d->look, ms);
}

/* What is there is removed, then the reason is told. */
static void fail(struct disk_copy *d, const struct err *why)
{
	if (d->failed.code != ERR_NONE) { /* it was refused before, and tidied up */
		finish(d, &d->failed);
		return;
	}
	d->failed = *why;
	if (d->failed.code == ERR_INVALID) /* QEMU's word, not the caller's fault */
		d->failed.code = ERR_INTERNAL;
	go(d, OLD_CANCEL);
}

static void looked(struct disk_copy *d, const json_t *ret)
{
	struct err err;
	int over = is_over(ret, &err);

	if (over == 0 && clock_mono_ns() / NSEC_PER_MSEC > d->until_ms)
		over = err_set(&err, ERR_TIMEOUT, 0, "copy a disk: it takes too long");
	if (over < 0) {
		fail(d, &err);
	} else if (over > 0) {
		go(d, (enum at)(d->at + 1));
	} else {
		again(d, d->look_ms);
		d->look_ms = d->look_ms * 2 < DISK_COPY_LOOK_MAX_MS ? d->look_ms * 2
								    : DISK_COPY_LOOK_MAX_MS;
	}
}

/* What an earlier node left may take a moment to end. */
static void tidy_again(struct disk_copy *d, const struct err *err)
{
	if (d->tries++ < DISK_COPY_TRIES) {
		d->at = OLD_CANCEL;
		again(d, DISK_COPY_LOOK_MAX_MS);
	} else {
		fail(d, err);
	}
}

static void looked_for_old(struct disk_copy *d, const json_t *ret)
{
	struct err err;

	err_set(&err, ERR_INTERNAL, 0, "copy a disk: an earlier copy does not end");
	if (find_job(ret))
		tidy_again(d, &err);
	else
		go(d, (enum at)(d->at + 1));
}

static void refused(struct disk_copy *d, const struct err *err)
{
	if (d->at < PASS)
		go(d, (enum at)(d->at + 1));
	else if (d->at < OPENED)
		tidy_again(d, err);
	else
		fail(d, err);
}

static void on_answer(struct qmp_call *c, const json_t *ret, const struct err *err)
{
	struct disk_copy *d = CONTAINER_OF(c, struct disk_copy, call);

	timer_stop(&d->look);
	if (err && err->code != ERR_INVALID) /* it can no longer be heard */
		finish(d, err);
	else if (err)
		refused(d, err);
	else if (d->at == OLD_LOOK)
		looked_for_old(d, ret);
	else if (d->at == LOOK || d->at == LOOK_AGAIN)
		looked(d, ret);
	else
		go(d, (enum at)(d->at + 1));
}

static int ask(struct disk_copy *d, struct err *err)
{
	json_t *arguments;
	const char *command;

	/* a machine that is closed by others answers nothing: then it is asked again, in vain */
	timer_start(&d->look, DISK_COPY_SILENT_MS);
	if (d->at == PASS)
		return machine_add_fd(d->machine, &d->call, d->target, FDSET, on_answer, err);
	command = command_of(d, (enum at)d->at, &arguments);
	return machine_ask(d->machine, &d->call, command, arguments, on_answer, err);
}

/* Only from the loop: it may call back. */
static void go(struct disk_copy *d, enum at at)
{
	struct err err;

	if (at == PASS && d->failed.code != ERR_NONE) {
		finish(d, &d->failed);
		return;
	}
	if (at == STREAM && !d->flat)
		at = DROP;
	d->at = at;
	if (at == LOOK || at == LOOK_AGAIN)
		d->look_ms = d->look_ms ? d->look_ms : DISK_COPY_LOOK_MIN_MS;
	if (at == OPENED || at == BEGUN || at == OVER)
		finish(d, NULL);
	else if (ask(d, &err) < 0)
		finish(d, &err);
}

/* --- for others --------------------------------------------------------------------------- */

static int start(struct disk_copy *d, enum at at, disk_copy_done_fn *on_done, struct err *err)
{
	assert(!d->call.link);
	d->on_done = on_done;
	d->at = at;
	return ask(d, err);
}

int disk_copy_open(struct disk_copy *d, struct machine *m, int target, uint32_t layers,
		   disk_copy_done_fn *on_done, struct err *err)
{
	*d = (struct disk_copy){ .machine = m, .target = target, .layers = layers };
	timer_init(&d->look, m->loop, on_look);
	return start(d, OLD_CANCEL, on_done, err);
}

int disk_copy_begin(struct disk_copy *d, disk_copy_done_fn *on_done, struct err *err)
{
	assert(d->at == OPENED);
	return start(d, BACKUP, on_done, err);
}

void disk_copy_finish(struct disk_copy *d, bool flat, disk_copy_done_fn *on_done)
{
	assert(d->at == BEGUN && !d->call.link);
	d->on_done = on_done;
	d->flat = flat;
	d->look_ms = DISK_COPY_LOOK_MIN_MS;
	d->until_ms = clock_mono_ns() / NSEC_PER_MSEC + DISK_COPY_MAX_MS;
	d->at = LOOK;
	again(d, d->look_ms);
}

void disk_copy_cancel(struct disk_copy *d)
{
	if (!d->machine)
		return;
	timer_stop(&d->look);
	if (d->call.link)
		machine_close(d->machine);
	*d = (struct disk_copy){ 0 };
}
