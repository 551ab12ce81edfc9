/* loop.h - one event loop per thread: libuv's, with one owner and no loose ends.
 *
 * Everything in net/ and http/ belongs to one loop and is used on its thread only. No callback is
 * ever made from inside a call: callbacks come from loop_run() alone.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct loop;

enum { LOOP_READ_MAX = 48 * 1024 }; /* the largest piece a stream delivers at once, in bytes */

/* A daemon calls confine_begin() first: newer versions of libuv would otherwise make an io_uring,
 * which our seccomp filters do not allow.
 * SIGPIPE becomes ignored in this process: a write to a closed pipe is an error like any other.
 * Ignored signals survive exec, so who starts programs restores it in the child. */
int loop_open(struct loop **ret, struct err *err) NODISCARD;

/* Until loop_stop(), or until nothing is left to wait for. May be called again. */
void loop_run(struct loop *l);

/* One turn of it: waits for something to happen. False when nothing is left to wait for. */
bool loop_turn(struct loop *l);
void loop_stop(struct loop *l); /* from a callback; loop_run() returns after this turn */

/* Cuts off the streams that are still being closed, then frees. Anything else that is still open
 * (a stream, a timer that runs, a watch, a listener) is a leak and aborts. */
void loop_free(struct loop *l);

/* What is read and done in this turn is secret: when it is over, the buffer that streams read into
 * and the stack are wiped. */
void loop_forget(struct loop *l);

uint64_t loop_turns(const struct loop *l);  /* counts them: the same number, the same turn */
uint64_t loop_now_ms(const struct loop *l); /* monotonic; the time at which this turn began */
