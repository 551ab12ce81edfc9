/* clock.h - time, in nanoseconds. */
#pragma once

#include <stdint.h>

#define NSEC_PER_SEC  1000000000ull
#define NSEC_PER_MSEC 1000000ull

uint64_t clock_mono_ns(void); /* never jumps; means nothing outside this boot */
uint64_t clock_boot_ns(void); /* the same, and goes on while the host sleeps */
uint64_t clock_wall_ns(void); /* since 1970, UTC; may jump */

/* The rate of the processor's time stamp counter, measured over a twentieth of a second. */
uint64_t clock_tsc_khz(void);
