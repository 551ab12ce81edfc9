/* listen.h - a door: accepts connections and hands them out as streams.
 *
 * A listener pauses by itself at its limit and goes on when one of its streams is gone; out of
 * descriptors, it waits a moment. It never spins, and the waiting clients wait in the kernel.
 */
#pragma once

#include "net/addr.h"
#include "net/introduction.h"
#include "net/stream.h"

enum {
	LISTEN_BACKLOG = 1024,
	LISTEN_BUSY_MAX = 4,   /* that are let in in a turn of the loop, when many come */
	LISTEN_RETRY_MS = 100, /* after the system had no descriptor or memory left */
};

/* Whom a peer brings. */
enum listener_peer {
	LISTENER_CLIENT,     /* itself */
	LISTENER_PROXY,      /* the clients of many: is not counted as one address */
	LISTENER_INTRODUCES, /* one client, whom its first bytes name (introduction.h) */
};

struct listener;
struct listener_ops {
	/* The stream is the callee's. `peer` is borrowed. May close the listener. */
	void (*on_accept)(struct listener *ln, struct stream *s, const struct addr *peer);
	/* The same for one more of its address than may be. May be NULL: it is reset. */
	void (*on_surplus)(struct listener *ln, struct stream *s, const struct addr *peer);
	/* The rest only where there are proxies; all of it NULL: every peer is a client. */
	enum listener_peer (*kind_of)(struct listener *ln, const struct addr *peer);
	/* As introduction_ops.read. */
	int (*read_introduction)(struct listener *ln, struct bytes so_far, struct net_peer *who,
				 size_t *ret_more, struct err *err);
	/* As on_accept, for one that was introduced. NULL: on_accept, with its address. */
	void (*on_introduced)(struct listener *ln, struct stream *s, const struct net_peer *who);
	/* This proxy's introduction was not to be had; the connection was closed. */
	void (*on_unknown)(struct listener *ln, const struct addr *proxy, const struct err *why);
};

struct listener_door;
struct listener { /* all zero: closed */
	const struct listener_ops *ops;
	struct listener_door *door;
};

/* `limit`: streams alive at once, those still being closed included. A port of 0 lets the system
 * choose. A unix path is created with `mode`, after removing a socket nobody listens on, and
 * removed by listener_close(). */
int listener_open(struct listener *ln, struct loop *l, const struct listener_ops *ops,
		  const struct addr *at, unsigned int mode, size_t limit,
		  struct err *err) NODISCARD;

/* A socket that already listens, from a supervisor or another process. Takes fd, also on failure.
 */
int listener_open_fd(struct listener *ln, struct loop *l, const struct listener_ops *ops, int fd,
		     size_t limit, struct err *err) NODISCARD;

/* At most so many streams of one address (address_counts.h); 0: any number. A proxy on this host
 * brings the clients of many: with `but_local` what comes from this host is not counted, unless
 * it was introduced. */
int listener_limit_address(struct listener *ln, size_t limit, bool but_local,
			   struct err *err) NODISCARD;

void listener_addr(const struct listener *ln, struct addr *ret); /* with the real port */
size_t listener_alive(const struct listener *ln);                /* streams it counts */
void listener_pause(struct listener *ln, bool on);

/* Nobody comes in any more: the socket is closed, or left to those who hold it too. Its streams
 * live on and are counted. A second time does nothing. */
void listener_stop(struct listener *ln);

/* The streams live on; those who were not yet introduced are cut off. The owner may be freed at
 * once. A second time does nothing. */
void listener_close(struct listener *ln);
