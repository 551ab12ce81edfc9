/* hand.h - what egress hands to a worker: is it a connection? Pure. */
#pragma once

#include "base/bytes.h"
#include "injector/protocol.h"

/* What a message has behind its fixed part. */
struct hand_rest {
	const struct injector_refusal
		*refusal;   /* NULL: it is not refused. Borrowed, as the rest is */
	struct bytes first; /* what the guest has said */
};

/* A message of `len` bytes (at least its fixed part, all of them in place) that came with `n_fds`
 * descriptors: two, or one of a connection that is refused. After it the name is normal, the rate
 * can be counted with, texts have an end, and what is behind it is just what it says. */
bool hand_is_sound(const struct injector_hand *h, size_t len, size_t n_fds, struct hand_rest *ret);
