/* script.h - for targets whose input is a script: who does what to whom, over real sockets, one
 * step after the other. What a step needs it cuts off the front; where the input ends, it is 0.
 *
 * No step waits for time to pass: timers that should fire are made to.
 */
#pragma once

#include <errno.h>
#include <sys/socket.h>

#include "fuzz/sent.h"
#include "net/timer.h"

enum { SCRIPT_BLOCK_MAX = 70000 }; /* bytes sent in one go */

static inline struct bytes script_cut(struct bytes *in, size_t n)
{
	struct bytes b = bytes_head(*in, n);

	*in = bytes_tail(*in, b.len);
	return b;
}

static inline uint8_t script_byte(struct bytes *in)
{
	struct bytes b = script_cut(in, 1);

	return b.len > 0 ? b.ptr[0] : 0;
}

/* So many bytes of the script, or as many times 270 of nothing in particular: more than queues and
 * buffers have room for. */
static inline struct bytes script_said(struct bytes *in, bool much)
{
	static const uint8_t block[SCRIPT_BLOCK_MAX];
	uint8_t n = script_byte(in);

	return much ? (struct bytes){ block, (size_t)n * 270 } : script_cut(in, n);
}

/* --- sockets: whatever fails is for the other side to notice ---------------------------------- */

static inline void script_put(int fd, struct bytes b)
{
	if (fd >= 0 && b.len > 0)
		(void)!send(fd, b.ptr, b.len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static inline struct bytes script_take(int fd, size_t max)
{
	static uint8_t into[64 * 1024];
	ssize_t n =
		fd < 0 ? -1 : recv(fd, into, max < sizeof(into) ? max : sizeof(into), MSG_DONTWAIT);

	return (struct bytes){ into, n > 0 ? (size_t)n : 0 };
}

static inline void script_drop(int *fd, bool reset)
{
	const struct linger now = { .l_onoff = 1 };

	if (*fd < 0)
		return;
	if (reset)
		(void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(take_fd(fd));
}

/* A half close, a close or a reset. */
static inline void script_end(int *fd, uint8_t how)
{
	if (*fd >= 0 && how & 64)
		(void)shutdown(*fd, SHUT_WR);
	else
		script_drop(fd, how & 128);
}

static inline void script_pair(int type, int ret[static 2])
{
	MUST(socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) == 0);
}

/* --- the loop ----------------------------------------------------------------------------------
 */

static inline void script_on_tick(struct timer *t)
{
	(void)t;
}

/* What is ready is heard; nobody is waited for. */
static inline void script_turn(struct loop *l, int n)
{
	struct timer tick;

	timer_init(&tick, l, script_on_tick);
	while (n-- > 0) {
		timer_start(&tick, 0);
		(void)loop_turn(l);
	}
	timer_stop(&tick);
}

static inline void script_fire(struct timer *t)
{
	if (t->active)
		timer_start(t, 0);
}
