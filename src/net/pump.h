/* pump.h - relay two streams, both ways, until both directions have ended.
 *
 * Each direction holds at most PUMP_HOLD bytes: when the receiver is slow, the sender is no longer
 * read. An end is passed on as a half close while the other direction lives on. A broken stream
 * breaks the other one too: both are reset. It is over when both have taken all that is for them,
 * so whoever counts relays counts those that are read slowly, too.
 */
#pragma once

#include "net/stream.h"
#include "net/timer.h"

enum {
	PUMP_HOLD = STREAM_LOW_WATER + LOOP_READ_MAX,
	PUMP_LAST_MS = 250,   /* both have ended: how often to look whether all of it was taken */
	PUMP_LAST_TRIES = 20, /* nothing was, so often: it is given up */
};

struct pump;
struct pump_side;
struct pump_ops {
	/* The last call: both directions ended and were sent (NULL), or what broke. The streams are
	 * closed. */
	void (*on_done)(struct pump *p, const struct err *err);
	/* May be NULL: all passes. Else what `from` received and may pass is appended to `out`; a
	 * failure breaks both. It may write to either stream itself. */
	int (*pass)(struct pump *p, struct pump_side *from, struct bytes in, struct buf *out,
		    struct err *err);
	/* May be NULL. So many bytes of `from` were passed on: the place for pump_hold(). */
	void (*moved)(struct pump *p, struct pump_side *from, size_t n);
};

struct pump_side {
	struct stream *s;
	struct stream_user user;
	struct pump *pump;
	uint64_t moved; /* bytes received from this side and passed on */
	bool ended;
	bool waits; /* see pump_wait() */
};

struct pump { /* embedded by the caller, who may free it in on_done */
	const struct pump_ops *ops;
	struct pump_side a, b;
	struct timer idle;
	uint64_t idle_ms, seen; /* seen: bytes moved when last looked */
	unsigned int tries;     /* both have ended: looked, and nothing had moved */
	bool held;
};

/* Takes both streams. Bytes that were read off one of them before belong written to the other
 * first. idle_ms: end with ERR_TIMEOUT when nothing moved for so long (at most twice as long);
 * 0: never. */
void pump_start(struct pump *p, const struct pump_ops *ops, struct stream *a, struct stream *b,
		uint64_t idle_ms);

void pump_hold(struct pump *p, bool on); /* while on, neither side is read */

/* While on, this side is not read: what becomes of its bytes, and of its end, is for the other side
 * to say. An end of the other side is the last word, too. */
void pump_wait(struct pump_side *side, bool on);

void pump_abort(struct pump *p); /* resets both; on_done will not come */
void pump_close(struct pump *p); /* the same, but what was passed on arrives, and then an end */
