/* clock.c - the clocks anyone may read. */
/* #syscalls: clock_gettime */
#include "base/clock.h"

#include <assert.h>
#include <time.h>
#include <x86intrin.h>

static uint64_t read_clock(clockid_t id)
{
	struct timespec ts;
	int rc = clock_gettime(id, &ts);

	assert(rc == 0 && "a clock that always exists");
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

uint64_t clock_mono_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_boot_ns(void)
{
	return read_clock(CLOCK_BOOTTIME);
}

uint64_t clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

uint64_t clock_tsc_khz(void)
{
	const struct timespec wait = { .tv_nsec = 50 * NSEC_PER_MSEC };
	uint64_t ns = clock_mono_ns(), ticks = __rdtsc();

	nanosleep(&wait, NULL);
	ns = clock_mono_ns() - ns;
	ticks = __rdtsc() - ticks;
	return ticks * 1000000 / ns;
}
