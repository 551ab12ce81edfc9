/* watchers.c - see watchers.h. */
#include "agent/filesystem/watchers.h"

#include <errno.h>

#include "base/log.h"
#include "base/random.h"

struct watcher {
	struct watcher *next;
	struct agent *agent;
	struct dir_watch watch;
	bool include_entry, lost;
	struct buf events;
	char id[WATCHER_ID_MAX];
};

static void watcher_free(struct watcher *w)
{
	dir_watch_close(&w->watch);
	buf_done(&w->events);
	free(w);
}

void watchers_done(struct watchers *t)
{
	while (t->first) {
		struct watcher *w = t->first;

		t->first = w->next;
		watcher_free(w);
	}
	t->n = 0;
}

static void on_event(struct dir_watch *d, enum dir_event type, const char *name)
{
	struct watcher *w = CONTAINER_OF(d, struct watcher, watch);
	size_t before = w->events.len;
	struct err err;

	if ((before > 0 && buf_add(&w->events, BYTES_LIT(","), &err) < 0) ||
	    watch_event_put(w->agent, d, &(struct watch_event){ type, name, w->include_entry },
			    &w->events, &err) < 0) {
		log_warn("watcher: %s", err.msg);
		w->events.len = before;
		w->lost = true;
	}
	dir_watch_hold(d, w->events.len > WATCHER_KEEP_MAX - WATCH_EVENT_MAX);
}

static void on_lost(struct dir_watch *d)
{
	CONTAINER_OF(d, struct watcher, watch)->lost = true;
}

int watchers_add(struct agent *a, const struct watch_wish *wish, char ret_id[static WATCHER_ID_MAX],
		 struct err *err)
{
	static const struct dir_watch_ops ops = { on_event, on_lost };
	struct watchers *t = &a->watchers;
	struct watcher *w;

	if (t->n == WATCHERS_MAX)
		return err_set(err, ERR_EXHAUSTED, 0, "more than %d watchers", WATCHERS_MAX);
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "watch");
	w->agent = a;
	w->include_entry = wish->include_entry;
	w->events = BUF_MAX(WATCHER_KEEP_MAX);
	if (dir_watch_open(&w->watch, a->loop, &wish->dir, &ops, err) < 0) {
		watcher_free(w);
		return -1;
	}
	w->id[0] = 'w';
	random_name(w->id + 1, WATCHER_ID_RANDOM);
	memcpy(ret_id, w->id, sizeof(w->id));
	w->next = t->first;
	t->first = w;
	t->n++;
	return 0;
}

static struct watcher **find(struct watchers *t, struct bytes id, struct err *err)
{
	for (struct watcher **at = &t->first; *at; at = &(*at)->next)
		if (bytes_eq(bytes_str((*at)->id), id))
			return at;
	err_set(err, ERR_NOT_FOUND, 0, "watcher with id %.*s not found",
		(int)bytes_head(id, 64).len, (const char *)id.ptr);
	return NULL;
}

int watchers_fetch(struct watchers *t, struct bytes id, struct buf *out, struct err *err)
{
	struct watcher **at = find(t, id, err), *w;

	if (!at)
		return -1;
	w = *at;
	/* who waits for the answer to a write and then asks is told of that write */
	dir_watch_catch_up(&w->watch);
	if (w->lost) {
		w->lost = false;
		return err_set(err, ERR_UNAVAILABLE, 0, "%s", WATCH_LOST);
	}
	if (buf_add(out, buf_view(&w->events), err) < 0)
		return -1;
	buf_done(&w->events);
	w->events = BUF_MAX(WATCHER_KEEP_MAX);
	dir_watch_hold(&w->watch, false);
	return 0;
}

int watchers_remove(struct watchers *t, struct bytes id, struct err *err)
{
	struct watcher **at = find(t, id, err), *w;

	if (!at)
		return -1;
	w = *at;
	*at = w->next;
	t->n--;
	watcher_free(w);
	return 0;
}
