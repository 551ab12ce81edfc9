/* zsock.h - one ZeroMQ socket on the loop: whole messages in and out, nobody waits.
 *
 * libzmq has threads of its own, which do the reading and writing; its descriptor only says that
 * there may be news, and only once. So whatever is asked of a socket is followed by a look.
 */
#pragma once

#include "base/bytes.h"
#include "net/timer.h"
#include "net/watch.h"

enum {
	ZSOCK_FRAMES_MAX = 16, /* of a message; more are thrown away with it */
	/* that are given out in a turn of the loop; then it is the others' turn */
	ZSOCK_TURN_MESSAGES = 8,
	ZSOCK_TURN_BYTES = 256 * 1024,
	ZSOCK_WAITING_MAX = 16, /* messages that libzmq keeps for us: what is behind them waits in
				   the kernel, which stops when its own queue is full */
	/* bytes of a frame; who sends more is cut off. Of all frames of a message: it is dropped */
	ZSOCK_MESSAGE_MAX = 128 * 1024 * 1024,
	ZSOCK_RETRY_MS = 20, /* until there is somebody to connect to */
};

struct zsock;
typedef void zsock_message_fn(struct zsock *z, const struct bytes *frames, size_t n);
struct zsock { /* embedded by its owner; all zero: closed */
	void *socket;
	zsock_message_fn *on_message; /* the frames are borrowed; may close the socket */
	struct watch ready;
	struct timer again;
	bool paused;
	bool *gone; /* set by zsock_close() from inside on_message */
};

/* `type`: ZMQ_DEALER or ZMQ_SUB (everything is subscribed to). `context` is libzmq's. */
int zsock_open(struct zsock *z, struct loop *l, void *context, int type, const char *endpoint,
	       zsock_message_fn *on_message, struct err *err) NODISCARD;

/* All or nothing; ERR_EXHAUSTED when the other side takes nothing. */
int zsock_send(struct zsock *z, const struct bytes *frames, size_t n, struct err *err) NODISCARD;

void zsock_pause(struct zsock *z, bool on); /* what comes waits, and so does its sender */
void zsock_close(struct zsock *z);          /* a second time does nothing */
