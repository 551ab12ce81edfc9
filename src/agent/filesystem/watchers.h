/* watchers.h - watches that are asked for their events now and then, instead of a stream.
 *
 * Events are kept until they are fetched, each once. What is not fetched holds the watch, so the
 * kernel queues and at last drops; the next fetch then fails with data_loss, once.
 */
#pragma once

#include "agent/filesystem/watch_event.h"

enum {
	WATCHERS_MAX = 256,
	WATCHER_ID_RANDOM = 20,
	WATCHER_ID_MAX = 1 + WATCHER_ID_RANDOM + 1, /* with its NUL */
	WATCHER_KEEP_MAX = 4 * 1024 * 1024,         /* of events, in bytes of JSON */
};

struct watcher;

void watchers_done(struct watchers *t);

int watchers_add(struct agent *a, const struct watch_wish *wish, char ret_id[static WATCHER_ID_MAX],
		 struct err *err) NODISCARD;

/* Appends the events, separated by commas, and forgets them. ERR_NOT_FOUND: no such watcher.
 * ERR_UNAVAILABLE: some were lost before these. */
int watchers_fetch(struct watchers *t, struct bytes id, struct buf *out, struct err *err) NODISCARD;
int watchers_remove(struct watchers *t, struct bytes id, struct err *err) NODISCARD;
