/* reply_queue.h - replies on their way to one gateway; holds memory only while it does not read. */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"

enum {
	REPLY_QUEUE_MAX = 8 * 1024 * 1024, /* bytes waiting; more is refused */
	REPLY_QUEUE_FDS_MAX = 512,         /* descriptors waiting; more are not sent */
};

struct letter;
struct reply_queue { /* all zero: empty */
	struct letter *first, *last;
	size_t bytes, n_fds;
};

/* Send now if the other side reads, else keep a copy. text_len is filled in; takes the descriptors
 * in any case. When there are more descriptors than may wait or travel, the reply becomes the
 * error ERR_EXHAUSTED without them. ERR_EXHAUSTED: the box is full. ERR_UNAVAILABLE: broken. */
int reply_queue_send(struct reply_queue *b, int sock, const struct node_reply *r,
		     struct bytes after, const int *fds, size_t n_fds, struct err *err) NODISCARD;

/* As much as the other side takes now. */
int reply_queue_flush(struct reply_queue *b, int sock, struct err *err) NODISCARD;

void reply_queue_done(struct reply_queue *b); /* throws away what is left */
