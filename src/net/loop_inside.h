/* loop_inside.h - what a loop is made of; for the sources of net/ only. */
#pragma once

#include <uv.h>

#include "net/loop.h"
#include "net/timer.h"

struct fd_stream;
struct turn_end;

struct loop {
	uv_loop_t uv;
	uv_timer_t clock;   /* runs until the first timer that is not due yet */
	uv_idle_t soon;     /* runs while a timer is due: libuv then does not wait */
	uv_prepare_t count; /* once in each turn */
	uint64_t turns;
	struct timer *top; /* of the heap: the next to fire */
	uint64_t timer_seq;
	struct turn_end *ends; /* see turn_end.h */
	bool running;
	bool forgets;                 /* this turn: see loop_forget() */
	uint64_t linger_ms;           /* STREAM_LINGER_MS, but for tests */
	struct fd_stream *lingering;  /* closed by their owners, not yet gone */
	uint8_t input[LOOP_READ_MAX]; /* every stream reads into this one */
};
