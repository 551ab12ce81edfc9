/* introduction.c - see introduction.h. */
/* #syscalls: read */
#include "net/introduction.h"

#include <errno.h>
#include <unistd.h>

void introduction_stop(struct introduction *i)
{
	watch_close(&i->ready);
	timer_stop(&i->late);
	buf_done(&i->so_far);
}

static void end(struct introduction *i, const struct err *err)
{
	introduction_stop(i);
	i->ops->on_done(i, err);
}

static void on_late(struct timer *t)
{
	struct introduction *i = CONTAINER_OF(t, struct introduction, late);
	struct err err;

	err_set(&err, ERR_TIMEOUT, 0, "the header did not arrive in time");
	end(i, &err);
}

/* 1: something was read. 0: nothing is there now. */
static int read_some(struct introduction *i, size_t n, struct err *err)
{
	uint8_t *room;
	ssize_t got;

	if (buf_reserve(&i->so_far, n, &room, err) < 0)
		return -1;
	got = read(i->fd, room, n);
	if (got > 0) {
		buf_claim(&i->so_far, (size_t)got);
		return 1;
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (i->so_far.len == 0)
		return err_set(err, ERR_UNAVAILABLE, got < 0 ? errno : 0, "closed without a word");
	return err_set(err, ERR_INVALID, got < 0 ? errno : 0, "the header is cut off");
}

static void on_ready(struct watch *w, unsigned int events)
{
	struct introduction *i = CONTAINER_OF(w, struct introduction, ready);
	struct net_peer who = i->who;
	struct err err;
	size_t more;
	int rc;

	(void)events; /* what is wrong with it, reading it says */
	do {
		if (i->ops->read(i, buf_view(&i->so_far), &who, &more, &err) < 0) {
			end(i, &err);
			return;
		}
		if (more == 0) {
			i->who = who;
			end(i, NULL);
			return;
		}
		rc = read_some(i, more, &err);
	} while (rc > 0);
	if (rc < 0)
		end(i, &err);
}

int introduction_start(struct introduction *i, struct loop *l, uint64_t ms, struct err *err)
{
	i->so_far = BUF_MAX(INTRODUCTION_MAX);
	timer_init(&i->late, l, on_late);
	if (watch_open(&i->ready, l, i->fd, WATCH_READ, on_ready, err) < 0)
		return -1;
	timer_start(&i->late, ms);
	return 0;
}
