/* dial.c - a connection attempt: one descriptor, one deadline, one answer. */
/* Here unix sockets alone are made; who dials the internet (dial_start) names socket_inet, too. */
/* #syscalls: socket connect fcntl getsockopt close */
#include "net/dial.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

#include "net/fd_stream.h"

static void stop(struct dial *d)
{
	watch_close(&d->ready);
	timer_stop(&d->deadline);
	timer_stop(&d->retry);
}

void dial_cancel(struct dial *d)
{
	stop(d);
	if (d->on_done && d->fd >= 0)
		close(d->fd);
	d->fd = -1;
	d->on_done = NULL;
}

static void fail(struct dial *d, enum err_code code, int sys)
{
	__auto_type on_done = d->on_done;
	char text[ADDR_TEXT_MAX];
	struct err err;

	addr_text(&d->to, text);
	err_set(&err, code, sys, "connect to %s", text);
	dial_cancel(d);
	on_done(d, NULL, &err);
}

static void succeed(struct dial *d)
{
	__auto_type on_done = d->on_done;
	struct stream *s;
	struct err err;
	int rc;

	stop(d);
	rc = fd_stream_open(d->loop, take_fd(&d->fd), FD_STREAM_BOTH, &s, &err);
	d->on_done = NULL;
	if (rc < 0)
		on_done(d, NULL, &err);
	else
		on_done(d, s, NULL);
}

static void on_deadline(struct timer *t)
{
	fail(CONTAINER_OF(t, struct dial, deadline), ERR_TIMEOUT, 0);
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct dial *d = CONTAINER_OF(w, struct dial, ready);
	int sys = 0;
	socklen_t len = sizeof(sys);

	(void)events;
	if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &sys, &len) < 0)
		sys = errno;
	if (sys != 0)
		fail(d, ERR_UNAVAILABLE, sys);
	else
		succeed(d);
}

/* From a timer, since on_done must not come from inside dial_start(). */
static void try_connect(struct timer *t)
{
	struct dial *d = CONTAINER_OF(t, struct dial, retry);
	/* SAFETY: sockaddr_storage is made to be seen as sockaddr */
	int rc = connect(d->fd, (const struct sockaddr *)&d->to.at, d->to.len);

	if (rc == 0)
		succeed(d);
	else if (errno == EINPROGRESS || errno == EINTR)
		watch_set(&d->ready, WATCH_WRITE);
	else if (errno == EAGAIN && d->to.at.ss_family == AF_UNIX)
		timer_start(&d->retry, DIAL_RETRY_MS);
	else
		fail(d, ERR_UNAVAILABLE, errno);
}

int dial_start_fd(struct dial *d, struct loop *l, int fd, const struct addr *to,
		  uint64_t deadline_ms, dial_done_fn *on_done, struct err *err)
{
	AUTO(auto_close) int own = fd;

	assert(deadline_ms > 0);
	*d = (struct dial){ .loop = l, .fd = -1, .to = *to };
	if (watch_open(&d->ready, l, fd, 0, on_ready, err) < 0)
		return err_wrap(err, "dial");
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	d->fd = take_fd(&own);
	d->on_done = on_done;
	timer_init(&d->deadline, l, on_deadline);
	timer_init(&d->retry, l, try_connect);
	timer_start(&d->deadline, deadline_ms);
	timer_start(&d->retry, 0);
	return 0;
}

int dial_start(struct dial *d, struct loop *l, const struct addr *to, uint64_t deadline_ms,
	       dial_done_fn *on_done, struct err *err)
{
	int fd = socket(to->at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_set(err, ERR_INTERNAL, errno, "make a socket");
	return dial_start_fd(d, l, fd, to, deadline_ms, on_done, err);
}
