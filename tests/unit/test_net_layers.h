/* test_net_layers.h - for tests of net/ and http/: pairs of sockets, a user that writes everything
 * down, and a middle layer that cuts all traffic into small pieces and may disguise it.
 */
#pragma once

#include "tests/unit/check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "net/fd_stream.h"
#include "net/stream_layer.h"
#include "net/timer.h"

enum { TEST_PATIENCE_MS = 10000, EAR_MAX = 64 * 1024 * 1024 };

static inline void patience_over(struct timer *t)
{
	(void)t;
}

/* Turn until it is so; a loop with nothing left to do, or too much time, is a failure. */
#define RUN_UNTIL(loop, cond)                                                   \
	do {                                                                    \
		struct timer patience_;                                         \
		timer_init(&patience_, loop, patience_over);                    \
		timer_start(&patience_, TEST_PATIENCE_MS);                      \
		while (!(cond))                                                 \
			if (!loop_turn(loop) || (!patience_.active && !(cond))) \
				fail_msg("never: %s", #cond);                   \
		timer_stop(&patience_);                                         \
	} while (0)

static inline struct loop *test_loop(void)
{
	struct loop *l = NULL;
	struct err err = { 0 };

	if (loop_open(&l, &err) < 0)
		fail_msg("%s", err.msg);
	return l;
}

struct ear { /* a stream user that keeps what it hears */
	struct stream_user user;
	struct buf got;
	size_t pieces, largest, ends, drains, fails;
	struct err why;
	size_t stop_after; /* stop reading when that much was heard; 0: never */
	struct stream *s;
};

static inline void ear_on_data(struct stream_user *u, struct bytes in)
{
	struct ear *e = CONTAINER_OF(u, struct ear, user);
	struct err err;

	assert_true(in.len > 0);
	e->pieces++;
	if (in.len > e->largest)
		e->largest = in.len;
	if (buf_add(&e->got, in, &err) < 0)
		fail_msg("%s", err.msg);
	if (e->stop_after > 0 && e->got.len >= e->stop_after)
		stream_read(e->s, false);
}

static inline void ear_on_end(struct stream_user *u)
{
	CONTAINER_OF(u, struct ear, user)->ends++;
}

static inline void ear_on_drain(struct stream_user *u)
{
	CONTAINER_OF(u, struct ear, user)->drains++;
}

static inline void ear_on_fail(struct stream_user *u, const struct err *err)
{
	struct ear *e = CONTAINER_OF(u, struct ear, user);

	e->fails++;
	e->why = *err;
}

static inline void ear_init(struct ear *e, struct stream *s)
{
	static const struct stream_user_ops ops = { ear_on_data, ear_on_end, ear_on_drain,
						    ear_on_fail };

	*e = (struct ear){ .user = { &ops }, .got = BUF_MAX(EAR_MAX), .s = s };
	stream_set_user(s, &e->user);
}

static inline bool ear_heard(const struct ear *e, const char *text)
{
	return bytes_eq(buf_view(&e->got), bytes_str(text));
}

static inline void ear_done(struct ear *e)
{
	if (e->s)
		stream_close(e->s);
	e->s = NULL;
	buf_done(&e->got);
}

static inline struct stream *test_stream(struct loop *l, int fd)
{
	struct stream *s = NULL;
	struct err err = { 0 };

	if (fd_stream_open(l, fd, FD_STREAM_BOTH, &s, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

static inline void unix_pair(int fd[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
}

/* A test beside this one may dial the port of a door that it had before: who comes in is looked at.
 */
static inline void tcp_pair(int fd[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET }, mine, who;
	socklen_t len = sizeof(at);
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(door, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(door, 8), 0);
	assert_int_equal(getsockname(door, (struct sockaddr *)&at, &len), 0);
	fd[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd[0], (struct sockaddr *)&at, len), 0);
	assert_int_equal(getsockname(fd[0], (struct sockaddr *)&mine, &len), 0);
	for (;; close(fd[1])) {
		fd[1] = accept4(door, (struct sockaddr *)&who, &len, SOCK_CLOEXEC);
		assert_true(fd[1] >= 0);
		if (who.sin_port == mine.sin_port)
			break;
	}
	close(door);
}

struct bend { /* the middle layer */
	struct stream face;
	struct stream *low;
	struct stream_user user;
	struct timer later;
	struct buf in;
	size_t piece; /* how much goes through at a time, both ways */
	uint8_t key;  /* every byte is changed by it, both ways */
	bool ended, failed, dead;
	struct err why;
};

static inline struct bend *bend_of(struct stream *s)
{
	return CONTAINER_OF(s, struct bend, face);
}

/* Give the user what it wants to have; it may stop, or close, after any piece. */
static inline void bend_deliver(struct bend *b)
{
	while (b->in.len > 0 && b->face.user && b->face.reading) {
		struct bytes next = bytes_head(buf_view(&b->in), b->piece);
		struct buf copy = BUF_MAX(EAR_MAX); /* of its own: ASan sees who keeps it */
		struct err err;

		assert_int_equal(buf_add(&copy, next, &err), 0);
		buf_drop(&b->in, next.len);
		b->face.user->ops->on_data(b->face.user, buf_view(&copy));
		buf_done(&copy);
	}
	if (b->in.len > 0 || !b->face.user)
		return;
	if (b->ended && b->face.reading) {
		b->ended = false;
		b->face.user->ops->on_end(b->face.user);
	}
	if (b->failed && b->face.user) {
		b->failed = false;
		b->face.user->ops->on_fail(b->face.user, &b->why);
	}
}

static inline void bend_on_data(struct stream_user *u, struct bytes in)
{
	struct bend *b = CONTAINER_OF(u, struct bend, user);
	size_t before = b->in.len;
	struct err err;

	assert_int_equal(buf_add(&b->in, in, &err), 0);
	for (size_t i = before; i < b->in.len; i++)
		b->in.ptr[i] ^= b->key;
	bend_deliver(b);
	if (!b->dead)
		stream_read(b->low, b->face.reading && b->in.len == 0);
}

static inline void bend_on_end(struct stream_user *u)
{
	struct bend *b = CONTAINER_OF(u, struct bend, user);

	b->ended = true;
	bend_deliver(b);
}

static inline void bend_on_drain(struct stream_user *u)
{
	struct bend *b = CONTAINER_OF(u, struct bend, user);

	if (b->face.user)
		b->face.user->ops->on_drain(b->face.user);
}

static inline void bend_on_fail(struct stream_user *u, const struct err *err)
{
	struct bend *b = CONTAINER_OF(u, struct bend, user);

	b->failed = true;
	b->why = *err;
	bend_deliver(b);
}

static inline void bend_on_later(struct timer *t)
{
	struct bend *b = CONTAINER_OF(t, struct bend, later);

	if (b->dead) {
		buf_done(&b->in);
		free(b);
		return;
	}
	bend_deliver(b);
	if (!b->dead)
		stream_read(b->low, b->face.reading && b->in.len == 0);
}

static inline void bend_read(struct stream *s, bool on)
{
	struct bend *b = bend_of(s);

	if (on && (b->in.len > 0 || b->ended || b->failed))
		timer_start(&b->later, 0);
	else
		stream_read(b->low, on);
}

static inline int bend_write(struct stream *s, struct bytes in, struct buf *take, struct err *err)
{
	struct bend *b = bend_of(s);
	struct bytes all = take ? buf_view(take) : in;

	for (size_t at = 0; at < all.len; at += b->piece) {
		struct bytes next = bytes_head(bytes_tail(all, at), b->piece);
		uint8_t changed[4096];

		assert_true(next.len <= sizeof(changed));
		for (size_t i = 0; i < next.len; i++)
			changed[i] = next.ptr[i] ^ b->key;
		if (stream_write(b->low, (struct bytes){ changed, next.len }, err) < 0)
			return -1;
	}
	return 0;
}

static inline void bend_shut(struct stream *s)
{
	stream_shut(bend_of(s)->low);
}

static inline void bend_close(struct stream *s, bool graceful)
{
	struct bend *b = bend_of(s);

	if (graceful)
		stream_close(b->low);
	else
		stream_abort(b->low);
	b->dead = true;
	timer_start(&b->later, 0);
}

static inline size_t bend_queued(struct stream *s)
{
	return stream_queued(bend_of(s)->low);
}

static inline uint64_t bend_sent(struct stream *s)
{
	return stream_sent(bend_of(s)->low);
}

/* Put the layer on top of `low`, which it owns from here on. */
static inline struct stream *bend_over(struct stream *low, size_t piece, uint8_t key)
{
	static const struct stream_ops ops = { bend_read,  bend_write,  bend_shut,
					       bend_close, bend_queued, bend_sent };
	static const struct stream_user_ops user_ops = { bend_on_data, bend_on_end, bend_on_drain,
							 bend_on_fail };
	struct bend *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	stream_init(&b->face, &ops, stream_loop(low));
	timer_init(&b->later, stream_loop(low), bend_on_later);
	b->low = low;
	b->user.ops = &user_ops;
	b->in = BUF_MAX(EAR_MAX);
	b->piece = piece;
	b->key = key;
	stream_set_user(low, &b->user);
	return &b->face;
}
