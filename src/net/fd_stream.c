/* fd_stream.c - a stream over a descriptor, driven by readiness.
 *
 * OPEN; after close() LINGER, until all is sent and the other's end seen, or time is up; then DEAD.
 * A descriptor that fails while OPEN is `broken`: nothing is written any more, but what the other
 * side sent before (an early answer to an upload that was cut off) is delivered if the owner reads,
 * and only then on_fail comes. DEAD ones are freed in the next turn: the close may be ours.
 * `later` is for the last words of a broken stream, the limit of lingering, a dead one.
 */
/* #syscalls: read fstat newfstatat ioctl getsockopt setsockopt shutdown close */
#include "net/fd_stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/list.h"
#include "net/loop_inside.h"
#include "net/stream_layer.h"
#include "net/tcp.h"
#include "net/watch.h"
#include "net/write_queue.h"

enum fd_state { FD_OPEN, FD_LINGER, FD_DEAD };

struct fd_stream {
	struct stream face;
	struct watch ready;
	struct timer later;
	struct write_queue queue;
	uint64_t sent;
	size_t linger_left; /* undelivered when last looked, in bytes */
	size_t thrown_away; /* while lingering, in bytes */
	struct fd_gate *gate;
	struct fd_stream *linger_next, **linger_prev;
	int fd;
	int broken; /* errno, or 0 */
	enum fd_state state;
	enum fd_stream_use use;
	bool is_socket;
	bool wants_room; /* a file is to go on: say when something can be written */
	bool above;      /* the queue passed STREAM_LOW_WATER: on_drain is due */
	bool ended;      /* the other side finished writing, and we read that */
	bool told;       /* of the failure */
	bool hup_seen;   /* it finished, but we are not reading: do not ask again */
};

static struct fd_stream *of(struct stream *s)
{
	return CONTAINER_OF(s, struct fd_stream, face);
}

static bool wants_read(const struct fd_stream *f)
{
	if (f->ended || f->broken || f->use == FD_STREAM_WRITE_ONLY)
		return false;
	return f->state == FD_LINGER || (f->state == FD_OPEN && f->face.reading);
}

/* What to wait for is a function of what we hold; nobody toggles interest by hand. */
static void update_interest(struct fd_stream *f)
{
	unsigned int events = 0;

	if (f->state != FD_DEAD && !f->broken) {
		if (wants_read(f))
			events |= WATCH_READ;
		else if (!f->hup_seen && !f->ended)
			events |= WATCH_HUP;
		if (f->queue.len > 0 || f->wants_room)
			events |= WATCH_WRITE;
	}
	watch_set(&f->ready, events);
}

static void linger_leave(struct fd_stream *f)
{
	list_remove_by(f, linger_next, linger_prev);
}

/* What the other side has not confirmed yet: in our queue and in the kernel's. */
static size_t undelivered(const struct fd_stream *f)
{
	int n = 0;

	if (!f->is_socket || ioctl(f->fd, SIOCOUTQ, &n) < 0 || n < 0)
		n = 0;
	return f->queue.len + (size_t)n;
}

static void linger_enter(struct fd_stream *f)
{
	f->state = FD_LINGER;
	f->linger_left = undelivered(f);
	list_add_by(&f->face.loop->lingering, f, linger_next, linger_prev);
	timer_start(&f->later, f->face.loop->linger_ms);
}

static void let_go_of_fd(struct fd_stream *f)
{
	watch_close(&f->ready);
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static void die(struct fd_stream *f, bool reset)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (reset && f->is_socket && f->fd >= 0) /* refused by a unix socket, which has no reset */
		(void)setsockopt(f->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	let_go_of_fd(f);
	linger_leave(f);
	write_queue_done(&f->queue);
	if (f->gate)
		f->gate->on_gone(f->gate);
	f->gate = NULL;
	f->state = FD_DEAD;
	timer_start(&f->later, 0);
}

void fd_stream_cut(struct fd_stream *f)
{
	die(f, true);
}

static void break_down(struct fd_stream *f, int sys)
{
	f->broken = sys != 0 ? sys : EPIPE;
	write_queue_done(&f->queue);
	update_interest(f);
	timer_start(&f->later, 0);
}

static void shut_now(struct fd_stream *f)
{
	if (f->is_socket)
		(void)shutdown(f->fd, SHUT_WR); /* fails only if there is nobody to tell */
	else if (f->use == FD_STREAM_WRITE_ONLY)
		let_go_of_fd(f);
}

/* A graceful close is complete when the other side has said its last word, too: closing with
 * unread bytes makes the kernel send a reset, which can overtake what we sent. */
static void linger_check(struct fd_stream *f)
{
	if (f->queue.len > 0)
		return;
	if (!f->is_socket || f->ended || f->use == FD_STREAM_READ_ONLY)
		die(f, false);
}

static void tell_drained(struct fd_stream *f)
{
	if (!f->above || f->queue.len > STREAM_LOW_WATER || !f->face.user)
		return;
	f->above = false;
	if (f->face.user->ops->on_drain)
		f->face.user->ops->on_drain(f->face.user);
}

static void flush(struct fd_stream *f)
{
	ssize_t n = write_queue_flush(&f->queue, f->fd, f->is_socket);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n < 0) {
		break_down(f, errno);
		return;
	}
	f->sent += (uint64_t)n;
	if (f->queue.len == 0 && f->face.shut)
		shut_now(f);
	if (f->state == FD_LINGER)
		linger_check(f);
	else
		tell_drained(f);
}

static void give_up(struct fd_stream *f)
{
	struct err err;

	if (f->told)
		return;
	f->told = true;
	err_set(&err, ERR_UNAVAILABLE, f->broken, "connection lost");
	f->face.user->ops->on_fail(f->face.user, &err);
}

static void on_read_end(struct fd_stream *f)
{
	f->ended = true;
	if (f->state == FD_LINGER)
		linger_check(f);
	else if (f->broken)
		give_up(f);
	else
		f->face.user->ops->on_end(f->face.user);
}

static void on_read_bytes(struct fd_stream *f, struct bytes in)
{
	if (f->state == FD_OPEN) {
		f->face.user->ops->on_data(f->face.user, in);
		return;
	}
	explicit_bzero(f->face.loop->input, in.len); /* nobody says any more if it is secret */
	f->thrown_away += in.len;
	if (f->thrown_away > STREAM_LINGER_READ)
		die(f, true);
}

/* One read per turn: the others get their turn, and readiness comes again if there is more.
 * False when there was nothing to read. */
static bool read_once(struct fd_stream *f)
{
	uint8_t *into = f->face.loop->input;
	ssize_t n = read(f->fd, into, LOOP_READ_MAX);

	if (n > 0) {
		on_read_bytes(f, (struct bytes){ into, (size_t)n });
		return true;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0 && errno != EIO && !f->broken) { /* EIO: the other side of a pty is gone */
		break_down(f, errno);
		return true;
	}
	on_read_end(f);
	return true;
}

static bool has_unread(const struct fd_stream *f)
{
	int n = 0;

	return f->use != FD_STREAM_WRITE_ONLY && !f->ended && ioctl(f->fd, FIONREAD, &n) == 0 &&
	       n > 0;
}

/* Broken: first what had arrived, if the owner reads, else wait until it does. What it wrote is
 * gone: if that was to leave first, two that wait for each other would do so for ever. */
static void last_words(struct fd_stream *f)
{
	if (!has_unread(f))
		give_up(f);
	else if (!f->face.reading)
		tell_drained(f);
	else if (read_once(f) && f->state == FD_OPEN && !f->ended)
		timer_start(&f->later, 0);
}

/* A slow reader gets its time as long as it reads. */
static void linger_timeout(struct fd_stream *f)
{
	size_t left = undelivered(f);

	if (f->broken || left == 0 || left >= f->linger_left) {
		die(f, left > 0);
		return;
	}
	f->linger_left = left;
	timer_start(&f->later, f->face.loop->linger_ms);
}

static void on_later(struct timer *t)
{
	struct fd_stream *f = CONTAINER_OF(t, struct fd_stream, later);

	switch (f->state) {
	case FD_DEAD:
		free(f);
		break;
	case FD_LINGER:
		linger_timeout(f);
		break;
	case FD_OPEN:
		if (!f->broken)
			tell_drained(f);
		else if (f->face.user)
			last_words(f);
		break;
	}
}

static void on_error(struct fd_stream *f)
{
	int sys = 0;
	socklen_t len = sizeof(sys);

	if (f->is_socket)
		(void)getsockopt(f->fd, SOL_SOCKET, SO_ERROR, &sys, &len);
	break_down(f, sys);
}

static void on_room(struct fd_stream *f)
{
	f->wants_room = false; /* whoever is told asks again */
	if (f->queue.len > 0)
		flush(f);
	else
		tell_drained(f);
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct fd_stream *f = CONTAINER_OF(w, struct fd_stream, ready);

	if (events & WATCH_ERROR)
		on_error(f);
	if (events & WATCH_HUP)
		f->hup_seen = true;
	if (events & WATCH_WRITE)
		on_room(f);
	if ((events & WATCH_READ) && wants_read(f))
		(void)read_once(f);
	if (f->state == FD_LINGER && f->broken)
		die(f, true);
	update_interest(f);
}

static void fd_read(struct stream *s, bool on)
{
	struct fd_stream *f = of(s);

	(void)on;
	if (f->broken || f->above)
		timer_start(&f->later, 0);
	update_interest(f);
}

static int enqueue(struct fd_stream *f, struct bytes b, struct buf *take, size_t skip,
		   struct err *err)
{
	int rc = take ? write_queue_take(&f->queue, take, skip, err)
		      : write_queue_add(&f->queue, bytes_tail(b, skip), err);

	if (rc < 0) { /* some of it may have left: nobody could go on from here */
		break_down(f, ENOMEM);
		return -1;
	}
	f->above |= f->queue.len > STREAM_LOW_WATER;
	update_interest(f);
	return 0;
}

static int fd_write(struct stream *s, struct bytes b, struct buf *take, struct err *err)
{
	struct fd_stream *f = of(s);
	struct bytes all = take ? buf_view(take) : b;
	ssize_t n = 0;

	assert(f->use != FD_STREAM_READ_ONLY);
	if (!f->broken && f->queue.len == 0)
		n = write_now(f->fd, f->is_socket, all);
	if (n < 0 && errno != EAGAIN)
		break_down(f, errno);
	if (f->broken)
		return err_set(err, ERR_UNAVAILABLE, f->broken, "write");
	n = n < 0 ? 0 : n;
	f->sent += (uint64_t)n;
	if ((size_t)n == all.len)
		return 0;
	return enqueue(f, b, take, (size_t)n, err);
}

static enum stream_file wait_for_room(struct fd_stream *f)
{
	f->wants_room = f->above = true;
	update_interest(f);
	return STREAM_FILE_WAIT;
}

static enum stream_file fd_send_file(struct stream *s, int file, size_t max, size_t *ret_n,
				     struct err *err)
{
	struct fd_stream *f = of(s);
	ssize_t n = -1;

	if (!f->is_socket)
		return STREAM_FILE_UNFIT;
	if (!f->broken) {
		n = f->queue.len == 0 ? write_file_now(f->fd, file, max) : 0;
		if (f->queue.len > 0 || (n < 0 && errno == EAGAIN))
			return wait_for_room(f);
		if (n < 0 && errno == EINVAL)
			return STREAM_FILE_UNFIT;
		if (n < 0)
			break_down(f, errno);
	}
	if (n < 0) {
		err_set(err, ERR_UNAVAILABLE, f->broken, "write");
		return STREAM_FILE_FAILED;
	}
	f->sent += (uint64_t)n;
	*ret_n = (size_t)n;
	return STREAM_FILE_SENT;
}

static void fd_shut(struct stream *s)
{
	struct fd_stream *f = of(s);

	if (f->queue.len == 0 && !f->broken)
		shut_now(f);
}

static void fd_close(struct stream *s, bool graceful)
{
	struct fd_stream *f = of(s);

	if (!graceful || f->broken || f->fd < 0) {
		die(f, !graceful || f->broken);
		return;
	}
	linger_enter(f);
	if (!s->shut) {
		s->shut = true;
		fd_shut(s);
	}
	linger_check(f);
	if (f->state == FD_LINGER)
		update_interest(f);
}

static size_t fd_queued(struct stream *s)
{
	return of(s)->queue.len + of(s)->wants_room; /* a file that waits is there to be sent */
}

static uint64_t fd_sent(struct stream *s)
{
	return of(s)->sent;
}

static const struct stream_ops fd_ops = { fd_read,   fd_write, fd_shut,     fd_close,
					  fd_queued, fd_sent,  fd_send_file };

void fd_stream_set_gate(struct stream *s, struct fd_gate *g)
{
	of(s)->gate = g;
}

int *fd_stream_idle(struct stream *s)
{
	struct fd_stream *f = s->ops == &fd_ops ? of(s) : NULL;

	return f && f->is_socket && !f->broken && f->queue.len == 0 ? &f->fd : NULL;
}

static int learn_kind(struct fd_stream *f, struct err *err)
{
	struct stat st;

	if (fstat(f->fd, &st) < 0)
		return err_set(err, ERR_INTERNAL, errno, "look at descriptor %d", f->fd);
	f->is_socket = S_ISSOCK(st.st_mode);
	if (f->is_socket)
		tcp_set_up(f->fd);
	return 0;
}

int fd_stream_open(struct loop *l, int fd, enum fd_stream_use use, struct stream **ret,
		   struct err *err)
{
	AUTO(auto_close) int own = fd;
	AUTO(auto_free) struct fd_stream *f = calloc(1, sizeof(*f));

	if (!f)
		return err_set(err, ERR_EXHAUSTED, ENOMEM, "allocate stream");
	stream_init(&f->face, &fd_ops, l);
	f->fd = fd;
	f->use = use;
	f->is_socket = use == FD_STREAM_ACCEPTED;
	timer_init(&f->later, l, on_later);
	if (!f->is_socket && learn_kind(f, err) < 0)
		return -1;
	if (watch_open(&f->ready, l, fd, 0, on_ready, err) < 0)
		return err_wrap(err, "open stream");
	(void)take_fd(&own);
	*ret = &TAKE(f)->face;
	return 0;
}
