/* introduction.h - the first bytes of a connection, where they say for whom a proxy made it.
 *
 * They come before any protocol, so they are read from the descriptor before it is a stream, and
 * never one byte more of it: whatever follows is read by whoever comes next, TLS or HTTP.
 */
#pragma once

#include "net/addr.h"
#include "net/timer.h"
#include "net/watch.h"

enum {
	INTRODUCTION_MS = 5000, /* from the connection to the last byte of it */
	INTRODUCTION_MAX = 4096,
};

/* Who is at the other end, as far as is known. */
struct net_peer {
	struct addr at;
	bool secure;  /* spoke TLS, with us or with a proxy that says so */
	bool proxied; /* comes through a proxy that is believed */
	bool unnamed; /* that proxy does not say for whom: `at` is the proxy's */
};

struct introduction;
struct introduction_ops {
	/* What it says so far. On entry `who` is the proxy itself. *ret_more: so many bytes more
	 * belong to it, at least; 0: it is whole, and `who` is whom it names. -1: not to be had. */
	int (*read)(struct introduction *i, struct bytes so_far, struct net_peer *who,
		    size_t *ret_more, struct err *err);
	/* The last call: i may be freed. NULL: i->who is known. Its descriptor is the owner's
	 * again. ERR_UNAVAILABLE: the proxy went without a word, as one does that looks who
	 * listens. */
	void (*on_done)(struct introduction *i, const struct err *err);
};

struct introduction { /* embedded by its owner; all zero: not begun */
	const struct introduction_ops *ops;
	int fd;
	struct net_peer who;
	struct watch ready;
	struct timer late;
	struct buf so_far;
};

/* Set before: ops, fd, which is borrowed until on_done or until it is stopped, and the proxy in
 * who.at. All of it must arrive within `ms`. */
int introduction_start(struct introduction *i, struct loop *l, uint64_t ms,
		       struct err *err) NODISCARD;
void introduction_stop(struct introduction *i); /* on_done will not come */
