/* stream.h - the one interface to a two-way flow of bytes, whatever is underneath.
 *
 *	struct session { struct stream *s; struct stream_user user; ... };
 *	static void on_data(struct stream_user *u, struct bytes in)
 *	{
 *		struct session *me = CONTAINER_OF(u, struct session, user);
 *		...
 *	}
 *
 * A stream has one owner, who calls stream_close() or stream_abort() exactly once, also after
 * on_fail. From then on no callback comes and the owner may be freed at once, from inside any
 * callback too; the stream cleans up after itself. Every call below may be made from every
 * callback, and none of them calls back.
 */
#pragma once

#include <stdint.h>

#include "base/bytes.h"
#include "net/loop.h"

enum {
	STREAM_QUEUE_MAX = 256 * 1024, /* bytes accepted and not yet sent; more is refused */
	STREAM_LOW_WATER = 16 * 1024,  /* on_drain when no more than this is left */
	STREAM_LINGER_MS = 5000,       /* a graceful close is given up when nothing moves so long */
	STREAM_LINGER_READ = 1024 * 1024, /* and how much it throws away meanwhile, in bytes */
};

struct stream_user;
struct stream_user_ops {
	/* Bytes, at least one, borrowed until the call returns. Only while reading is on. */
	void (*on_data)(struct stream_user *u, struct bytes in);
	/* The other side finished writing. Only while reading is on; once. Writing may go on. */
	void (*on_end)(struct stream_user *u);
	/* The queue was above STREAM_LOW_WATER and no longer is; it may be lost: then writing says
	 * so. May be NULL. */
	void (*on_drain)(struct stream_user *u);
	/* Broken: nothing more will arrive or leave. The last call; the owner now closes. */
	void (*on_fail)(struct stream_user *u, const struct err *err);
};
struct stream_user {
	const struct stream_user_ops *ops;
};

struct stream;

/* Say who is told. A new stream has nobody and does not read. NULL stops reading and leaves the
 * stream with nobody, to be handed over: what happens meanwhile the next user will learn. */
void stream_set_user(struct stream *s, struct stream_user *u);

/* Backpressure is the reader's: what it does not want to hold it leaves with the sender. */
void stream_read(struct stream *s, bool on);

/* Sent at once as far as the other side takes it, else queued. All or nothing: -1 says that none
 * of it will leave: ERR_EXHAUSTED over STREAM_QUEUE_MAX (wait for on_drain), ERR_UNAVAILABLE when
 * broken (on_fail follows, unless closed first), ERR_INVALID after stream_shut() (none follows). */
int stream_write(struct stream *s, struct bytes b, struct err *err) NODISCARD;

/* The same without a copy: takes b's memory on success and leaves it empty. */
int stream_write_buf(struct stream *s, struct buf *b, struct err *err) NODISCARD;

/* What the other side takes at once of the next `max` bytes of a file, straight from it: for large
 * files, where copies are the cost. *ret_n with STREAM_FILE_SENT; 0 there is the file's end. */
enum stream_file {
	STREAM_FILE_SENT,
	STREAM_FILE_WAIT,   /* nothing now: on_drain will come */
	STREAM_FILE_UNFIT,  /* not this stream, or not this file: read it and write */
	STREAM_FILE_FAILED, /* as stream_write() does */
};
enum stream_file stream_send_file(struct stream *s, int file, size_t max, size_t *ret_n,
				  struct err *err) NODISCARD;

void stream_shut(struct stream *s); /* half close: after the queue, say that nothing follows */

void stream_close(struct stream *s); /* in the background: send what is queued, then part well */
void stream_abort(struct stream *s); /* at once; the other side sees a reset. Queue is lost. */

size_t stream_queued(struct stream *s); /* accepted, not yet sent */
size_t stream_room(struct stream *s);   /* what stream_write() would still accept */
uint64_t stream_sent(struct stream *s); /* all told; shows whether a slow reader moves */
struct loop *stream_loop(const struct stream *s);
