/* listen.c - accepting, within limits.
 *
 * The door outlives its listener while streams that came through it are alive: they count down
 * when they go. Who has to be introduced is counted from the start, too.
 */
/* Once it is open. */
/* #syscalls: accept accept4 getsockopt getsockname setsockopt close */
#include "net/listen.h"

#include <assert.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/list.h"
#include "net/address_counts.h"
#include "net/fd_stream.h"
#include "net/loop_inside.h"
#include "net/tcp.h"
#include "net/watch.h"

struct door_stream { /* one that came through, until its descriptor is gone */
	struct fd_gate gate;
	struct listener_door *door;
	struct address_count *of; /* NULL: not counted */
};

struct newcomer { /* was not introduced yet; its descriptor is ours */
	struct introduction intro;
	struct listener_door *door;
	struct newcomer *next, **prev;
};

struct listener_door {
	struct listener *owner; /* NULL: closed */
	struct newcomer *newcomers;
	struct loop *loop;
	struct watch ready;
	struct timer rest;
	size_t alive, limit;
	size_t address_limit;
	bool but_local;
	struct address_counts *addresses; /* NULL: they are not counted */
	int fd;
	bool paused;
	uint64_t turn; /* in which somebody came last */
	bool busy;     /* in on_ready, where a callback may close listener and streams */
	struct addr at;
	bool made_path; /* at is a unix path of ours, to be removed */
};

static bool may_accept(const struct listener_door *d)
{
	return d->owner && d->fd >= 0 && !d->paused && !d->rest.active && d->alive < d->limit;
}

static void update_interest(struct listener_door *d)
{
	watch_set(&d->ready, may_accept(d) ? WATCH_READ : 0);
}

static void on_rested(struct timer *t)
{
	update_interest(CONTAINER_OF(t, struct listener_door, rest));
}

static void free_if_unused(struct listener_door *d)
{
	if (d->owner || d->alive > 0 || d->busy)
		return;
	free(d->addresses);
	free(d);
}

static void on_stream_gone(struct fd_gate *g)
{
	struct door_stream *one = CONTAINER_OF(g, struct door_stream, gate);
	struct listener_door *d = one->door;

	address_count_drop(one->of);
	free(one);
	d->alive--;
	update_interest(d);
	free_if_unused(d);
}

static enum listener_peer kind_of(const struct listener_door *d, const struct addr *peer)
{
	return d->owner->ops->kind_of ? d->owner->ops->kind_of(d->owner, peer) : LISTENER_CLIENT;
}

/* Somebody who comes in, and how it became known who it is. */
struct arrival {
	struct net_peer who;
	bool introduced;
};

static bool is_counted(const struct listener_door *d, const struct arrival *a)
{
	if (!d->addresses || kind_of(d, &a->who.at) != LISTENER_CLIENT)
		return false;
	return a->introduced || !(d->but_local && addr_is_local(&a->who.at));
}

/* NULL: no memory, the client sees its connection close. */
static struct door_stream *count_in(struct listener_door *d, struct stream *s,
				    const struct arrival *a)
{
	struct door_stream *one = calloc(1, sizeof(*one));
	bool counted = is_counted(d, a);

	if (one && counted)
		one->of = address_counts_add(d->addresses, &a->who.at);
	if (!one || (counted && !one->of)) {
		free(one);
		stream_abort(s);
		return NULL;
	}
	one->gate.on_gone = on_stream_gone;
	one->door = d;
	fd_stream_set_gate(s, &one->gate);
	d->alive++;
	return one;
}

static void hand_out(struct listener_door *d, int fd, const struct arrival *a)
{
	const struct listener_ops *ops = d->owner->ops;
	struct door_stream *one;
	struct stream *s;
	struct err err;

	if (fd_stream_open(d->loop, fd, FD_STREAM_ACCEPTED, &s, &err) < 0)
		return; /* no memory: as below */
	one = count_in(d, s, a);
	if (!one)
		return;
	if (one->of && one->of->n > d->address_limit) {
		if (ops->on_surplus)
			ops->on_surplus(d->owner, s, &a->who.at);
		else
			stream_abort(s);
	} else if (a->introduced && ops->on_introduced) {
		ops->on_introduced(d->owner, s, &a->who);
	} else {
		ops->on_accept(d->owner, s, &a->who.at);
	}
}

/* --- those who have to be introduced ------------------------------------------------------- */

/* Its descriptor is the caller's from now on. */
static void newcomer_free(struct newcomer *n)
{
	introduction_stop(&n->intro);
	list_remove(n);
	n->door->alive--;
	free(n);
}

static int read_introduction(struct introduction *i, struct bytes so_far, struct net_peer *who,
			     size_t *ret_more, struct err *err)
{
	struct listener *ln = CONTAINER_OF(i, struct newcomer, intro)->door->owner;

	return ln->ops->read_introduction(ln, so_far, who, ret_more, err);
}

static void on_introduced(struct introduction *i, const struct err *err)
{
	struct newcomer *n = CONTAINER_OF(i, struct newcomer, intro);
	struct listener_door *d = n->door;
	const struct listener_ops *ops = d->owner->ops;
	struct arrival a = { i->who, true };
	int fd = i->fd;

	newcomer_free(n);
	d->busy = true;
	if (!err) {
		hand_out(d, fd, &a);
	} else {
		close(fd);
		if (ops->on_unknown && err->code != ERR_UNAVAILABLE)
			ops->on_unknown(d->owner, &a.who.at, err);
	}
	d->busy = false;
	update_interest(d);
	free_if_unused(d);
}

static void await_introduction(struct listener_door *d, int fd, const struct addr *proxy)
{
	static const struct introduction_ops ops = { read_introduction, on_introduced };
	struct newcomer *n = calloc(1, sizeof(*n));
	struct err err;

	if (n)
		n->intro = (struct introduction){ .ops = &ops, .fd = fd, .who.at = *proxy };
	if (!n || introduction_start(&n->intro, d->loop, INTRODUCTION_MS, &err) < 0) {
		free(n);
		close(fd);
		return;
	}
	n->door = d;
	list_add(&d->newcomers, n);
	d->alive++;
}

static void welcome(struct listener_door *d, int fd, const struct addr *peer)
{
	if (kind_of(d, peer) == LISTENER_INTRODUCES)
		await_introduction(d, fd, peer);
	else
		hand_out(d, fd, &(struct arrival){ { .at = *peer }, false });
}

/* False: there was nobody, or nobody can be let in now. */
static bool accept_one(struct listener_door *d)
{
	struct addr peer = { .len = sizeof(peer.at) };
	/* SAFETY: sockaddr_storage is made to be seen as sockaddr */
	int fd = accept4(d->fd, (struct sockaddr *)&peer.at, &peer.len,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0) {
		welcome(d, fd, &peer);
		return true;
	}
	if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ||
	    errno == EBADF || errno == EINVAL || errno == ENOTSOCK)
		timer_start(&d->rest, LISTEN_RETRY_MS);
	/* else that one client's connection failed before we saw it */
	return false;
}

/* One per turn, so that the others get theirs. To ask for one more and find none is not cheap: the
 * kernel makes the new socket and its inode first, and then frees them again. Only where somebody
 * came in the turn before, too, so that they seem to queue up, it is a few. */
static void accept_some(struct listener_door *d)
{
	uint64_t turn = loop_turns(d->loop);
	bool busy = turn == d->turn + 1;

	d->turn = turn;
	for (int n = busy ? LISTEN_BUSY_MAX : 1; n > 0 && may_accept(d); n--)
		if (!accept_one(d))
			return;
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct listener_door *d = CONTAINER_OF(w, struct listener_door, ready);

	if (events & WATCH_ERROR)
		timer_start(&d->rest, LISTEN_RETRY_MS);
	d->busy = true;
	accept_some(d);
	d->busy = false;
	update_interest(d);
	free_if_unused(d);
}

int listener_open_fd(struct listener *ln, struct loop *l, const struct listener_ops *ops, int fd,
		     size_t limit, struct err *err)
{
	AUTO(auto_close) int own = fd;
	AUTO(auto_free) struct listener_door *d = calloc(1, sizeof(*d));
	int listening = 0;
	socklen_t len = sizeof(listening);

	assert(limit > 0);
	if (!d)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate listener");
	if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) < 0 || !listening)
		return err_set(err, ERR_INVALID, 0, "descriptor %d does not listen", fd);
	d->at.len = sizeof(d->at.at);
	if (getsockname(fd, (struct sockaddr *)&d->at.at, &d->at.len) < 0)
		return err_set(err, ERR_INTERNAL, errno, "ask for the address listened on");
	tcp_set_up(fd); /* what is accepted inherits it */
	d->owner = ln;
	d->loop = l;
	d->limit = limit;
	timer_init(&d->rest, l, on_rested);
	if (watch_open(&d->ready, l, fd, WATCH_READ, on_ready, err) < 0)
		return err_wrap(err, "listen");
	d->fd = take_fd(&own);
	*ln = (struct listener){ ops, TAKE(d) };
	return 0;
}

/* A path left behind by a process that died: a socket that refuses. */
static bool is_stale(const struct addr *at)
{
	AUTO(auto_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)&at->at, at->len) < 0 &&
	       errno == ECONNREFUSED;
}

static const char *unix_path(const struct addr *at)
{
	return ((const struct sockaddr_un *)(const void *)&at->at)->sun_path;
}

static int bind_to(int fd, const struct addr *at)
{
	int rc = bind(fd, (const struct sockaddr *)&at->at, at->len);

	if (rc < 0 && errno == EADDRINUSE && at->at.ss_family == AF_UNIX && is_stale(at)) {
		(void)unlink(unix_path(at));
		rc = bind(fd, (const struct sockaddr *)&at->at, at->len);
	}
	return rc;
}

int listener_open(struct listener *ln, struct loop *l, const struct listener_ops *ops,
		  const struct addr *at, unsigned int mode, size_t limit, struct err *err)
{
	bool is_unix = at->at.ss_family == AF_UNIX;
	AUTO(auto_close)
	int fd = socket(at->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char text[ADDR_TEXT_MAX];
	int on = 1;

	addr_text(at, text);
	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "make a socket for %s", text);
	if (!is_unix)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind_to(fd, at) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "bind to %s", text);
	/* before listen(), so that nobody connects under the wrong mode */
	if (is_unix && chmod(unix_path(at), mode) < 0)
		return err_set(err, ERR_INTERNAL, errno, "set the mode of %s", text);
	if (listen(fd, LISTEN_BACKLOG) < 0)
		return err_set(err, ERR_UNAVAILABLE, errno, "listen on %s", text);
	if (listener_open_fd(ln, l, ops, take_fd(&fd), limit, err) < 0)
		return err_wrap(err, "listen on %s", text);
	ln->door->made_path = is_unix;
	return 0;
}

int listener_limit_address(struct listener *ln, size_t limit, bool but_local, struct err *err)
{
	struct listener_door *d = ln->door;

	assert(!d->addresses && d->alive == 0);
	if (limit == 0)
		return 0;
	d->address_limit = limit;
	d->but_local = but_local;
	d->addresses = calloc(1, sizeof(*d->addresses));
	return d->addresses ? 0 : err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate addresses");
}

void listener_addr(const struct listener *ln, struct addr *ret)
{
	*ret = ln->door->at;
}

size_t listener_alive(const struct listener *ln)
{
	return ln->door->alive;
}

void listener_pause(struct listener *ln, bool on)
{
	ln->door->paused = on;
	update_interest(ln->door);
}

void listener_stop(struct listener *ln)
{
	struct listener_door *d = ln->door;

	if (d->fd < 0)
		return;
	timer_stop(&d->rest);
	watch_close(&d->ready);
	close(take_fd(&d->fd));
	if (d->made_path)
		(void)unlink(unix_path(&d->at));
}

void listener_close(struct listener *ln)
{
	struct listener_door *d = ln->door;

	if (!d)
		return;
	listener_stop(ln);
	while (d->newcomers) {
		close(d->newcomers->intro.fd);
		newcomer_free(d->newcomers);
	}
	ln->door = NULL;
	d->owner = NULL;
	free_if_unused(d);
}
