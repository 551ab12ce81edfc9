/* main.c - hotcell-agent: init of the guest, or the server in it; or hotcell-why. */
#include <malloc.h>
#include <sys/mman.h>

#include "agent/agent.h"
#include "agent/why.h"

enum { KEPT_FREE = 2 * 1024 * 1024, NEVER_ALONE = 1024 * 1024, GROWN_BY = 256 * 1024 };

/* Every message of a process comes and goes with its buffers. Without this the heap would shrink
 * and grow with each of them, and what grows is locked, so cleared and mapped at once: in an
 * emulated guest that took ten times as long as all the rest. */
static void keep_the_heap(void)
{
	(void)mallopt(M_TRIM_THRESHOLD, KEPT_FREE);
	(void)mallopt(M_MMAP_THRESHOLD, NEVER_ALONE);
	(void)mallopt(M_TOP_PAD, GROWN_BY);
}

int main(int argc, char **argv)
{
	if (why_is_meant(argv[0]))
		return why_main(argc, argv);
	keep_the_heap();
	/* Its pages stay where they are, whatever the user's programs do to the memory; and a copy
	 * of this machine has no page fault of ours to go through again. */
	(void)mlockall(MCL_CURRENT | MCL_FUTURE);
	return agent_main(argc, argv, &identity_effects_linux);
}
