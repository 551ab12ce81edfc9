/* agent_main.c - which of the two roles, and with what options. */
#include <signal.h>
#include <sys/stat.h>

#include "agent/agent.h"
#include "agent/machine/init.h"
#include "base/log.h"

enum { AGENT_UMASK = 022 };

/* Whatever our parent ignored: programs we start shall not inherit it. */
static void reset_signals(void)
{
	for (int signo = 1; signo < NSIG; signo++)
		(void)signal(signo, SIG_DFL); /* fails for SIGKILL and the like */
}

int agent_main(int argc, char **argv, const struct identity_effects *effects)
{
	struct agent_options o;
	struct err err;

	log_init("agent", LOG_INFO);
	(void)umask(AGENT_UMASK);
	reset_signals();
	if (options_parse(argc, argv, getpid() == 1, &o, &err) < 0) {
		log_error("%s", err.msg);
		return EXIT_FAILURE;
	}
	if (o.help) {
		fputs(options_help, stdout);
		return EXIT_SUCCESS;
	}
	if (o.init)
		init_run();
	return agent_serve(&o, effects);
}
