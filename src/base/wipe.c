/* wipe.c - see wipe.h. */
#include "base/wipe.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void wipe(void *at, size_t n)
{
	if (n > 0)
		explicit_bzero(at, n);
}

void wipe_free(void *p)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

#if defined(__x86_64__)
/* Every caller takes these for lost: they belong to whoever is called. */
#define WIDE_LOW                                                                                 \
	"xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
		"xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define ZERO(n) "vpxorq %%zmm" #n ", %%zmm" #n ", %%zmm" #n "\n\t"

static void wipe_registers(void)
{
	/* clang-format off */
	if (__builtin_cpu_supports("avx512f")) /* those above 15 are not used in our own code */
		__asm__ volatile(ZERO(16) ZERO(17) ZERO(18) ZERO(19) ZERO(20) ZERO(21) ZERO(22)
				 ZERO(23) ZERO(24) ZERO(25) ZERO(26) ZERO(27) ZERO(28) ZERO(29)
				 ZERO(30) ZERO(31) "vzeroall" ::: WIDE_LOW);
	else if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroall" ::: WIDE_LOW);
	/* clang-format on */
}
#else
static void wipe_registers(void)
{
}
#endif

/* A frame of its own, so that its array lies where those of others were. */
__attribute__((noinline)) static void wipe_below(void)
{
	uint8_t used[WIPE_STACK_DEPTH];

	explicit_bzero(used, sizeof(used));
}

void wipe_stack(void)
{
	wipe_below();
	wipe_registers();
}
