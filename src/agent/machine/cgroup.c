/* cgroup.c - cgroup.freeze says what is wanted, cgroup.events what is.
 *
 * The kernel tells of changes to cgroup.events by inotify, so waiting costs nothing. The watch is
 * set before the wish is written: no change can slip through in between.
 */
#include "agent/machine/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>

#include "base/bytes.h"

enum { EVENTS_TEXT_MAX = 256, NOTICE_MAX = 4096, LOOK_MS = 5 };

int cgroup_open(struct cgroup *c, const char *path, struct err *err)
{
	c->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dir < 0)
		return err_set(err, ERR_INTERNAL, errno, "open cgroup %s", path);
	return 0;
}

void cgroup_close(struct cgroup *c)
{
	if (c->dir >= 0)
		close(c->dir);
	c->dir = -1;
}

static int write_freeze(const struct cgroup *c, const char *wish, struct err *err)
{
	AUTO(auto_close) int fd = -1;

	if (c->dir < 0)
		return err_set(err, ERR_UNAVAILABLE, 0, "there is no cgroup for user processes");
	fd = openat(c->dir, "cgroup.freeze", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, wish, 1) != 1)
		return err_set(err, ERR_INTERNAL, errno, "write cgroup.freeze");
	return 0;
}

int cgroup_thaw(const struct cgroup *c, struct err *err)
{
	return c->dir < 0 ? 0 : write_freeze(c, "0", err);
}

static int is_frozen(const struct cgroup *c, bool *ret, struct err *err)
{
	AUTO(auto_close) int fd = openat(c->dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	char text[EVENTS_TEXT_MAX];
	struct bytes rest, line;
	ssize_t n;

	if (fd < 0 || (n = read(fd, text, sizeof(text))) < 0)
		return err_set(err, ERR_INTERNAL, errno, "read cgroup.events");
	rest = (struct bytes){ (const uint8_t *)text, (size_t)n };
	*ret = false;
	while (bytes_cut(&rest, '\n', &line))
		if (bytes_eq(line, BYTES_LIT("frozen 1")))
			*ret = true;
	return 0;
}

void freeze_cancel(struct freeze *f)
{
	if (!f->on_done)
		return;
	watch_close(&f->changed);
	timer_stop(&f->deadline);
	timer_stop(&f->soon);
	auto_close(&f->inotify);
	f->on_done = NULL;
}

static void finish(struct freeze *f, const struct err *err)
{
	freeze_done_fn *on_done = f->on_done;

	freeze_cancel(f);
	on_done(f, err);
}

static void look(struct freeze *f)
{
	struct err err;
	bool frozen;

	if (is_frozen(f->cgroup, &frozen, &err) < 0)
		finish(f, &err);
	else if (frozen)
		finish(f, NULL);
}

static void on_changed(struct watch *w, unsigned int events)
{
	struct freeze *f = CONTAINER_OF(w, struct freeze, changed);
	char notices[NOTICE_MAX];

	(void)events;
	while (read(f->inotify, notices, sizeof(notices)) > 0)
		; /* which one does not matter: only one file is watched */
	look(f);
}

static void on_soon(struct timer *t)
{
	look(CONTAINER_OF(t, struct freeze, soon));
}

static void on_deadline(struct timer *t)
{
	struct freeze *f = CONTAINER_OF(t, struct freeze, deadline);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "user processes did not freeze within %llu ms",
		(unsigned long long)f->ms);
	finish(f, &err);
}

static int watch_events(struct freeze *f, struct loop *l, struct err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d/cgroup.events", f->cgroup->dir);
	f->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f->inotify < 0 || inotify_add_watch(f->inotify, path, IN_MODIFY) < 0)
		return err_set(err, ERR_INTERNAL, errno, "watch cgroup.events");
	return watch_open(&f->changed, l, f->inotify, WATCH_READ, on_changed, err);
}

int freeze_start(struct freeze *f, struct loop *l, const struct cgroup *c, uint64_t ms,
		 freeze_done_fn *on_done, struct err *err)
{
	*f = (struct freeze){ .on_done = on_done, .cgroup = c, .ms = ms, .inotify = -1 };
	timer_init(&f->deadline, l, on_deadline);
	timer_init(&f->soon, l, on_soon);
	if (c->dir < 0) {
		*f = (struct freeze){ 0 };
		return err_set(err, ERR_UNAVAILABLE, 0, "there is no cgroup for user processes");
	}
	if (watch_events(f, l, err) < 0) { /* the user's programs may have used up all there is */
		watch_close(&f->changed);
		auto_close(&f->inotify);
		f->inotify = -1;
	}
	if (write_freeze(c, "1", err) < 0) {
		freeze_cancel(f);
		return err_wrap(err, "freeze");
	}
	timer_start(&f->deadline, ms);
	if (f->inotify >= 0)
		timer_start(&f->soon, 0); /* it may be so already, and then nothing changes */
	else
		timer_repeat(&f->soon, LOOK_MS);
	return 0;
}
