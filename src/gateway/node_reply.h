/* node_reply.h - is this what node would say? A node of another version, or a broken one, must not
 * make the gateway read beyond a message. */
#pragma once

#include "base/bytes.h"
#include "node/protocol.h"

/* A reply that arrived in a message of `len` bytes: known code, strings that end, a length that
 * is true. */
bool node_reply_ok(const struct node_reply *r, size_t len);

/* Take the next entry off the front of *after (of NODE_LIST). False at the end, or when broken. */
bool node_entry_next(struct bytes *after, struct node_sandbox *ret, struct bytes *ret_text);
bool node_forked_next(struct bytes *after, struct node_forked *ret);       /* NODE_FORK */
bool node_tombstone_next(struct bytes *after, struct node_tombstone *ret); /* of NODE_ENDED */
