/* main.c - hotcell-agent: init of the guest, or the server in it. */
#include "agent/agent.h"

int main(int argc, char **argv)
{
	return agent_main(argc, argv, &identity_effects_linux);
}
