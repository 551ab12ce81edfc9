/* node_reply.h - is this what node would say? A node of another version, or a broken one, must not
 * make the gateway read beyond a message. */
#pragma once

#include <stdbool.h>

#include "node/protocol.h"

/* A reply that arrived in a message of `len` bytes: known code, strings that end, a length that
 * is true. */
bool node_reply_ok(const struct node_reply *r, size_t len);
