/* main.c - `hotcell`: the operator's command line, a client of the gateway's admin socket. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/say.h"

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int help(const struct cli *c)
{
	if (!c->command || help_one(stdout, c->command)) {
		if (!c->command)
			help_all(stdout);
		return CLI_FINE;
	}
	fprintf(stderr, "hotcell: there is no command `%s`\n  fix: hotcell --help\n", c->command);
	return CLI_USAGE;
}

int main(int argc, char **argv)
{
	struct cli c = { .socket = variable("HOTCELL_ADMIN_SOCKET"),
			 .conf_dir = CLI_CONF_DIR,
			 .term = variable("TERM"),
			 .no_color = variable("NO_COLOR") != NULL,
			 .e2b = { variable("E2B_API_KEY"), variable("E2B_DOMAIN"),
				  variable("E2B_API_URL"), variable("E2B_SANDBOX_URL"),
				  variable("SSL_CERT_FILE") } };
	int status;

#if HOTCELL_FAULTS
	c.die_at = variable("HOTCELL_SETUP_DIE_AT");
	c.keep_soon = variable("HOTCELL_KEEP_SOON") != NULL;
#endif
	log_init("hotcell", LOG_WARN);
	status = options_take(&c, argc, argv);
	if (status >= 0)
		return status;
	if (c.help)
		return help(&c);
	if (c.version) {
		printf("hotcell %s\n", HOTCELL_RELEASE);
		return CLI_FINE;
	}
	if (!c.command) {
		help_all(stderr);
		return CLI_USAGE;
	}
	if (!c.socket || !*c.socket)
		c.socket = CLI_SOCKET;
	c.tls_dir = c.tls_dir ?: CLI_TLS_DIR;
	return cli_written(commands_run(&c));
}
