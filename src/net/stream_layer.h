/* stream_layer.h - for those who make streams: the descriptor layer, TLS, test layers.
 *
 * A layer embeds a struct stream, its upper face, and a struct stream_user, by which it uses the
 * stream below, which it owns. The promises of stream.h are the layer's to keep:
 *   - call up only from a callback of the layer below or from a timer, never from inside an op;
 *   - after every call up look whether the user closed meanwhile (s->user is NULL then);
 *   - after close() or abort() live on, unseen, as long as needed, then free yourself; never
 *     before the next turn of the loop, for a callback of yours may still be on the stack.
 */
#pragma once

#include "net/stream.h"

struct stream_ops {
	/* Also called when a user comes or goes: what could not be told to nobody is told to the
	 * next one. */
	void (*read)(struct stream *s, bool on);
	/* Exactly one of the two is used: copy `b`, or take the memory of `take`. */
	int (*write)(struct stream *s, struct bytes b, struct buf *take, struct err *err);
	void (*shut)(struct stream *s);
	void (*close)(struct stream *s, bool graceful); /* user is already NULL */
	size_t (*queued)(struct stream *s);             /* of this layer and those below */
	uint64_t (*sent)(struct stream *s);
	/* NULL: the bytes of a file have to be seen on their way. */
	enum stream_file (*send_file)(struct stream *s, int file, size_t max, size_t *ret_n,
				      struct err *err);
};

struct stream {
	const struct stream_ops *ops;
	struct loop *loop;
	struct stream_user *user;   /* NULL: nobody yet, or closed */
	bool reading, shut, closed; /* kept by stream.c */
};

static inline void stream_init(struct stream *s, const struct stream_ops *ops, struct loop *l)
{
	*s = (struct stream){ .ops = ops, .loop = l };
}
