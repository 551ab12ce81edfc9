/* create_queue.h - whose turn it is among the creates that wait. */
#pragma once

#include "node/life/creates.h"

void creates_enqueue(struct creates *q, struct create *c, bool first); /* first: it comes back */
void creates_dequeue(struct creates *q, struct create *c); /* fine when it is not in it */
void creates_take(struct creates *q, struct create *c);    /* it gets its sandbox */
size_t creates_waiting(const struct creates *q, const struct create *like); /* of its key */
