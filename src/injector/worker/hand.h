/* hand.h - what egress hands to a worker: is it a connection? Pure. */
#pragma once

#include "base/bytes.h"
#include "injector/protocol.h"

/* A message of `len` bytes (at least its fixed part) that came with `n_fds` descriptors. After it
 * the name is normal, the rate can be counted with, and what is behind it is just what it says. */
bool hand_is_sound(const struct injector_hand *h, size_t len, size_t n_fds);
