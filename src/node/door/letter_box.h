/* letter_box.h - replies on their way to one gateway; holds memory only while it does not read. */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"

enum {
	LETTER_BOX_MAX = 8 * 1024 * 1024, /* bytes waiting; more is refused */
	LETTER_BOX_FDS_MAX = 512,         /* descriptors waiting; more are not sent */
};

struct letter;
struct letter_box { /* all zero: empty */
	struct letter *first, *last;
	size_t bytes, n_fds;
};

/* Send now if the other side reads, else keep a copy. text_len is filled in; takes the descriptors
 * in any case. When there are more descriptors than may wait or travel, the reply becomes the
 * error ERR_EXHAUSTED without them. ERR_EXHAUSTED: the box is full. ERR_UNAVAILABLE: broken. */
int letter_box_send(struct letter_box *b, int sock, const struct node_reply *r, struct bytes after,
		    const int *fds, size_t n_fds, struct err *err) NODISCARD;

/* As much as the other side takes now. */
int letter_box_flush(struct letter_box *b, int sock, struct err *err) NODISCARD;

void letter_box_done(struct letter_box *b); /* throws away what is left */
