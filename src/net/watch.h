/* watch.h - call me when this descriptor is ready: pidfds, eventfds, inotify, sockets of others.
 *
 * The descriptor stays the caller's. After watch_close() no call comes any more, and both the
 * watch and the descriptor may go at once, also from inside on_ready.
 */
#pragma once

#include "net/loop.h"

enum {
	WATCH_READ = 1 << 0,
	WATCH_WRITE = 1 << 1,
	WATCH_HUP = 1 << 2,   /* the other side finished writing */
	WATCH_ERROR = 1 << 3, /* reported only: the descriptor failed and is no longer watched */
};

struct watch_handle;
struct watch;
typedef void watch_ready_fn(struct watch *w, unsigned int events);
struct watch { /* all zero: closed */
	struct watch_handle *handle;
	watch_ready_fn *on_ready;
};

/* Level-triggered: on_ready comes again until the reason is gone. `events` may be 0. One watch
 * per descriptor. Files and directories cannot be watched. */
int watch_open(struct watch *w, struct loop *l, int fd, unsigned int events,
	       watch_ready_fn *on_ready, struct err *err) NODISCARD;

void watch_set(struct watch *w, unsigned int events); /* 0: not now. Cheap if nothing changes. */
void watch_close(struct watch *w);                    /* a second time does nothing */
