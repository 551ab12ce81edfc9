/* main.c - hotcell-agent: init of the guest, or the server in it. */
#include <sys/mman.h>

#include "agent/agent.h"

int main(int argc, char **argv)
{
	/* Its pages stay where they are, whatever the user's programs do to the memory; and a copy
	 * of this machine has no page fault of ours to go through again. */
	(void)mlockall(MCL_CURRENT | MCL_FUTURE);
	return agent_main(argc, argv, &identity_effects_linux);
}
