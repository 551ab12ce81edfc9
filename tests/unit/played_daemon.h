/* played_daemon.h - a daemon that a test plays itself: it listens, takes whoever called last, and
 * its owner reads and answers what is said at `sock`. */
#pragma once

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/link_hello.h"
#include "net/watch.h"
#include "tests/unit/check.h"

struct played_daemon {
	char path[64];
	struct loop *loop;
	int door, sock; /* -1: nobody has called */
	struct watch at_door, at_sock;
	void (*on_asked)(struct watch *w, unsigned int events);
	uint32_t version;
};

static inline void played_daemon_hang_up(struct played_daemon *d)
{
	watch_close(&d->at_sock);
	if (d->sock >= 0)
		close(take_fd(&d->sock));
}

/* Its hello first; then its owner hears what is said. */
static inline void played_daemon_greet(struct watch *w, unsigned int events)
{
	struct played_daemon *d = CONTAINER_OF(w, struct played_daemon, at_sock);
	struct err err = { 0 };

	(void)events;
	if (link_hello_answer(d->sock, d->version, d->version, &err) == 0)
		w->on_ready = d->on_asked;
	else if (err.sys != EAGAIN)
		played_daemon_hang_up(d);
}

static inline void played_daemon_called(struct watch *w, unsigned int events)
{
	struct played_daemon *d = CONTAINER_OF(w, struct played_daemon, at_door);
	struct err err;

	(void)events;
	played_daemon_hang_up(d);
	d->sock = accept4(d->door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(d->sock >= 0);
	assert_int_equal(
		watch_open(&d->at_sock, d->loop, d->sock, WATCH_READ, played_daemon_greet, &err),
		0);
}

static inline void played_daemon_open(struct played_daemon *d, struct loop *l, const char *name,
				      uint32_t version, watch_ready_fn *on_asked)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	struct err err;

	d->loop = l;
	d->sock = -1;
	d->on_asked = on_asked;
	d->version = version;
	snprintf(d->path, sizeof(d->path), "/tmp/hotcell-%s-%d", name, (int)getpid());
	unlink(d->path);
	memcpy(at.sun_path, d->path, sizeof(d->path));
	d->door = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(d->door, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(d->door, 4), 0);
	assert_int_equal(
		watch_open(&d->at_door, l, d->door, WATCH_READ, played_daemon_called, &err), 0);
}

static inline void played_daemon_close(struct played_daemon *d)
{
	played_daemon_hang_up(d);
	watch_close(&d->at_door);
	close(d->door);
	unlink(d->path);
}
