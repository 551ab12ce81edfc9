/* dir_watch.h - what happens in a directory, and if asked for in all below it. inotify behind a
 *wall.
 *
 *	dir_watch_open() -> on_event ... -> dir_watch_close()
 *
 * A directory that appears below is watched from then on, and what is in it already is reported as
 * created (and written), so nothing falls between. A directory that moves within keeps its watches.
 * File systems of the kernel's own and, unless allowed, of the network are not entered.
 *
 * Who cannot take more holds the watch; then the kernel queues. What the kernel had to drop is said
 * by on_lost: no list of events with a hole in it is given out as whole.
 */
#pragma once

#include "agent/strings.h"
#include "agent/filesystem/tree_walk.h"
#include "agent/filesystem/watched_dirs.h"
#include "net/timer.h"
#include "net/watch.h"

enum {
	DIR_WATCH_READ = 16 * 1024, /* of the kernel's queue at once, in bytes */
	DIR_WATCH_TURN = 512,       /* events per turn of the loop */
};

enum dir_event { DIR_CREATE = 1, DIR_WRITE, DIR_REMOVE, DIR_RENAME, DIR_CHMOD }; /* as in proto */

struct dir_watch;
struct dir_watch_ops {
	/* `name` is relative to what is watched, "." for itself. May hold, must not close. */
	void (*on_event)(struct dir_watch *w, enum dir_event type, const char *name);
	/* Events were lost. What comes later is right again. May close. */
	void (*on_lost)(struct dir_watch *w);
};

struct dir_watch { /* embedded by its owner; all zero: closed */
	const struct dir_watch_ops *ops;
	char root[USER_PATH_MAX];
	bool recursive, network, held;
	int fd;
	struct watch ready;
	struct timer more;
	struct watched_dirs dirs;
	/* a directory left one place: the next event tells whether it came to another */
	uint32_t move_cookie; /* 0: none */
	char move_from[USER_PATH_MAX];
	/* a directory that appeared is being looked through */
	struct tree_walk scan;
	bool scanning;
	struct strings announced; /* found by it: their own events are to come, and not news */
	size_t raw_len, raw_at;
	_Alignas(8) uint8_t raw[DIR_WATCH_READ]; /* as the kernel gave it */
};

struct dir_watch_wish {
	const char *path; /* absolute; a symbolic link is followed */
	bool recursive, network;
};

/* ERR_NOT_FOUND: missing. ERR_INVALID: no directory, or of the network. ERR_EXHAUSTED: too many. */
int dir_watch_open(struct dir_watch *w, struct loop *l, const struct dir_watch_wish *wish,
		   const struct dir_watch_ops *ops, struct err *err) NODISCARD;
void dir_watch_hold(struct dir_watch *w, bool on);

/* What has happened by now is told at once, as far as it fits into a turn. Not from within ops. */
void dir_watch_catch_up(struct dir_watch *w);
void dir_watch_close(struct dir_watch *w); /* a second time does nothing */
