/* dir_watch.c - see dir_watch.h. */
#include "agent/filesystem/dir_watch.h"

#include <errno.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "agent/files/file_system.h"
#include "base/log.h"

enum {
	BELOW = IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_MODIFY | IN_DELETE | IN_ATTRIB |
		IN_ONLYDIR,
	AT_ROOT = BELOW | IN_DELETE_SELF | IN_MOVE_SELF,
};

/* --- which directories -------------------------------------------------------------------- */

static int watch_error(int sys, struct err *err)
{
	if (sys == ENOSPC || sys == ENOMEM)
		return err_set(err, ERR_EXHAUSTED, sys, "too many directories to watch");
	return err_set(err, sys == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, sys, "watch a directory");
}

static const char *relative(const struct dir_watch *w, const char *path)
{
	size_t len = strcmp(w->root, "/") == 0 ? 0 : strlen(w->root);

	return path[len] == '/' ? path + len + 1 : path + len;
}

static int add_dir(struct dir_watch *w, const char *path, uint32_t mask, struct err *err)
{
	int wd = inotify_add_watch(w->fd, path, mask);

	if (wd < 0)
		return watch_error(errno, err);
	return watched_dirs_set(&w->dirs, wd, relative(w, path), err);
}

/* Something found below: watched too if it is a directory that can be, else not entered. What
 * vanished meanwhile is nothing. */
static int add_below(struct dir_watch *w, struct tree_walk *walk, const struct tree_entry *e,
		     struct err *err)
{
	if (!e->is_dir)
		return 0;
	if (!file_system_watchable(e->path, w->network)) {
		tree_walk_skip(walk);
		return 0;
	}
	if (add_dir(w, e->path, BELOW | IN_DONT_FOLLOW, err) == 0)
		return 0;
	tree_walk_skip(walk);
	return err->sys == ENOENT || err->sys == ENOTDIR ? 0 : -1;
}

/* All that is there when the watch begins. */
static int add_all(struct dir_watch *w, struct err *err)
{
	AUTO(tree_walk_close) struct tree_walk walk = { 0 };
	struct tree_entry e;
	int more;

	if (tree_walk_open(&walk, w->root, UINT32_MAX, err) < 0)
		return -1;
	while ((more = tree_walk_next(&walk, &e, err)) > 0)
		if (add_below(w, &walk, &e, err) < 0)
			return -1;
	return more;
}

static void unwatch(void *ctx, int wd)
{
	struct dir_watch *w = ctx;

	(void)inotify_rm_watch(w->fd, wd);
}

static void forget_below(struct dir_watch *w, const char *top)
{
	watched_dirs_forget(&w->dirs, top, unwatch, w);
}

/* --- a directory that appeared ------------------------------------------------------------ */

static void lose(struct dir_watch *w, const struct err *err)
{
	log_warn("watch %s: %s", w->root, err->msg);
	timer_start(&w->more, 0); /* what is left is taken later, if anybody is left to take it */
	w->ops->on_lost(w);
}

static bool was_announced(struct dir_watch *w, const char *name)
{
	struct strings *s = &w->announced;

	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->v[i], name) != 0)
			continue;
		free(s->v[i]);
		s->v[i] = s->v[--s->n];
		s->v[s->n] = NULL;
		return true;
	}
	return false;
}

static void announce(struct dir_watch *w, const char *path)
{
	const char *name = relative(w, path);
	struct stat st;
	struct err err;

	if (lstat(path, &st) < 0)
		return; /* came and went */
	/* too many to remember: then some are told twice */
	(void)!strings_add(&w->announced, bytes_str(name), &err);
	w->ops->on_event(w, DIR_CREATE, name);
	if (S_ISREG(st.st_mode) && st.st_size > 0)
		w->ops->on_event(w, DIR_WRITE, name);
}

/* The next entry of the scan. False: events were lost, and the watch may be gone. */
static bool scan_step(struct dir_watch *w)
{
	struct tree_entry e;
	struct err err;
	int more = tree_walk_next(&w->scan, &e, &err);

	if (more > 0 && add_below(w, &w->scan, &e, &err) == 0) {
		announce(w, e.path);
		return true;
	}
	w->scanning = false;
	tree_walk_close(&w->scan);
	if (more == 0)
		return true;
	lose(w, &err);
	return false;
}

static bool scan_start(struct dir_watch *w, const char *name)
{
	char path[USER_PATH_MAX];
	struct err err;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", strcmp(w->root, "/") == 0 ? "" : w->root,
			     name) >= sizeof(path) ||
	    !file_system_watchable(path, w->network))
		return true;
	if (add_dir(w, path, BELOW | IN_DONT_FOLLOW, &err) == 0 &&
	    tree_walk_open(&w->scan, path, UINT32_MAX, &err) == 0) {
		w->scanning = true;
		return true;
	}
	tree_walk_close(&w->scan);
	if (err.sys == ENOENT || err.sys == ENOTDIR) /* gone again */
		return true;
	lose(w, &err);
	return false;
}

/* --- events ------------------------------------------------------------------------------- */

static void end_move(struct dir_watch *w)
{
	if (w->move_cookie)
		forget_below(w, w->move_from);
	w->move_cookie = 0;
}

/* A directory appeared under `name`: from within, or new. */
static bool dir_came(struct dir_watch *w, const struct inotify_event *e, const char *name)
{
	bool moved = (e->mask & IN_MOVED_TO) && w->move_cookie && e->cookie == w->move_cookie;

	if (moved && watched_dirs_rename(&w->dirs, w->move_from, name)) {
		w->move_cookie = 0;
		return true;
	}
	end_move(w);
	return scan_start(w, name);
}

static void dir_left(struct dir_watch *w, const struct inotify_event *e, const char *name)
{
	w->move_cookie = e->cookie;
	snprintf(w->move_from, sizeof(w->move_from), "%s", name);
}

static enum dir_event type_of(uint32_t mask)
{
	if (mask & (IN_CREATE | IN_MOVED_TO))
		return DIR_CREATE;
	if (mask & IN_MODIFY)
		return DIR_WRITE;
	if (mask & (IN_DELETE | IN_DELETE_SELF))
		return DIR_REMOVE;
	return mask & IN_ATTRIB ? DIR_CHMOD : DIR_RENAME;
}

/* Of the watched directory itself; those below are reported by the one they are in. */
static void take_self(struct dir_watch *w, const struct inotify_event *e, const char *dir)
{
	if (dir[0] == '\0' && (e->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB)))
		w->ops->on_event(w, type_of(e->mask), ".");
}

static bool take_named(struct dir_watch *w, const struct inotify_event *e, const char *name)
{
	bool dir = w->recursive && (e->mask & IN_ISDIR);
	bool created = e->mask & (IN_CREATE | IN_MOVED_TO);

	/* one that left is news if it comes again */
	if ((e->mask & (IN_CREATE | IN_MOVE | IN_DELETE)) && was_announced(w, name) && created) {
		end_move(w);
		return true; /* a directory was looked through, too */
	}
	w->ops->on_event(w, type_of(e->mask), name);
	if (dir && created)
		return dir_came(w, e, name);
	end_move(w);
	if (dir && (e->mask & IN_MOVED_FROM))
		dir_left(w, e, name);
	return true;
}

/* Among what was lost may have been new directories. */
static void overflow(struct dir_watch *w)
{
	struct err err;

	if (w->recursive && add_all(w, &err) < 0)
		log_warn("watch %s: %s", w->root, err.msg);
	err_set(&err, ERR_EXHAUSTED, 0, "the kernel dropped events");
	lose(w, &err);
}

/* False: events were lost, and the watch may be gone. */
static bool take(struct dir_watch *w, const struct inotify_event *e)
{
	const char *dir = watched_dirs_find(&w->dirs, e->wd);
	char name[USER_PATH_MAX];

	if (e->mask & IN_Q_OVERFLOW) {
		overflow(w);
		return false;
	}
	if (!dir) /* of a directory that is forgotten */
		return true;
	if (e->mask & IN_IGNORED) {
		watched_dirs_drop(&w->dirs, e->wd);
		return true;
	}
	if (e->len == 0) {
		take_self(w, e, dir);
		return true;
	}
	if ((size_t)snprintf(name, sizeof(name), "%s%s%s", dir, dir[0] ? "/" : "", e->name) >=
	    sizeof(name))
		return true; /* no path leads there */
	return take_named(w, e, name);
}

/* The queue is empty: whatever was to come has come. */
static void settle(struct dir_watch *w)
{
	end_move(w);
	strings_done(&w->announced);
}

static bool refill(struct dir_watch *w)
{
	ssize_t n = read(w->fd, w->raw, sizeof(w->raw));

	w->raw_at = 0;
	w->raw_len = n > 0 ? (size_t)n : 0;
	if (n <= 0)
		settle(w);
	return n > 0;
}

static bool take_next(struct dir_watch *w)
{
	const struct inotify_event *e = (const void *)(w->raw + w->raw_at);

	w->raw_at += sizeof(*e) + e->len;
	return take(w, e);
}

static void pump(struct dir_watch *w)
{
	for (int i = 0; i < DIR_WATCH_TURN; i++) {
		if (w->held)
			return;
		if (w->scanning) {
			if (!scan_step(w))
				return;
		} else if (w->raw_at < w->raw_len) {
			if (!take_next(w))
				return;
		} else if (!refill(w)) {
			return;
		}
	}
	timer_start(&w->more, 0); /* let others have a turn */
}

static void on_ready(struct watch *r, unsigned int events)
{
	(void)events;
	pump(CONTAINER_OF(r, struct dir_watch, ready));
}

static void on_more(struct timer *t)
{
	pump(CONTAINER_OF(t, struct dir_watch, more));
}

void dir_watch_catch_up(struct dir_watch *w)
{
	pump(w);
}

void dir_watch_hold(struct dir_watch *w, bool on)
{
	if (w->held == on)
		return;
	w->held = on;
	watch_set(&w->ready, on ? 0 : WATCH_READ);
	if (!on)
		timer_start(&w->more, 0);
}

/* --- life --------------------------------------------------------------------------------- */

static int check_root(const struct dir_watch_wish *wish, struct err *err)
{
	struct stat st;

	if (stat(wish->path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? err_set(err, ERR_NOT_FOUND, 0, "path not found")
			       : err_set(err, ERR_INTERNAL, errno, "look at the path");
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID, 0, "path is not a directory");
	if (!wish->network && file_system_is_network(wish->path))
		return err_set(err, ERR_INVALID, 0, "cannot watch path on network filesystem");
	return 0;
}

int dir_watch_open(struct dir_watch *w, struct loop *l, const struct dir_watch_wish *wish,
		   const struct dir_watch_ops *ops, struct err *err)
{
	*w = (struct dir_watch){
		.ops = ops, .recursive = wish->recursive, .network = wish->network, .fd = -1
	};
	timer_init(&w->more, l, on_more);
	snprintf(w->root, sizeof(w->root), "%s", wish->path);
	if (check_root(wish, err) < 0)
		return -1;
	w->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (w->fd < 0)
		return err_set(err, ERR_EXHAUSTED, errno, "too many watches");
	if (add_dir(w, w->root, AT_ROOT, err) < 0 || (w->recursive && add_all(w, err) < 0) ||
	    watch_open(&w->ready, l, w->fd, WATCH_READ, on_ready, err) < 0) {
		dir_watch_close(w);
		return -1;
	}
	return 0;
}

void dir_watch_close(struct dir_watch *w)
{
	if (!w->ops)
		return;
	w->ops = NULL;
	timer_stop(&w->more);
	watch_close(&w->ready);
	auto_close(&w->fd);
	w->fd = -1;
	watched_dirs_done(&w->dirs);
	tree_walk_close(&w->scan);
	strings_done(&w->announced);
}
