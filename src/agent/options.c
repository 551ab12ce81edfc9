/* options.c - getopt_long, and nothing from the environment. */
#include "agent/options.h"

#include <getopt.h>

#include "base/bytes.h"

enum { OPT_INIT = 1, OPT_SERVE, OPT_PORT, OPT_LISTEN, OPT_CGROUP, OPT_ROOT, OPT_USER, OPT_HELP };

const char options_help[] =
	"hotcell-agent - inside a sandbox: processes and files for its clients\n"
	"\n"
	"  --init            be the first process of the machine (the default as pid 1)\n"
	"  --serve           answer on the port (the default otherwise)\n"
	"  --port N          49983; 0 takes any and prints `ready N`\n"
	"  --listen ADDRESS  all addresses\n"
	"  --cgroup DIR      where user processes live; `none` for nowhere (the default)\n"
	"  --root DIR        look for /etc and /run below DIR (tests)\n"
	"  --user NAME       who a client is that does not say it (user)\n";

static const struct option table[] = {
	{ "init", no_argument, NULL, OPT_INIT },
	{ "serve", no_argument, NULL, OPT_SERVE },
	{ "port", required_argument, NULL, OPT_PORT },
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "cgroup", required_argument, NULL, OPT_CGROUP },
	{ "root", required_argument, NULL, OPT_ROOT },
	{ "user", required_argument, NULL, OPT_USER },
	{ "help", no_argument, NULL, OPT_HELP },
	{ 0 },
};

static int take_port(const char *text, struct agent_options *ret, struct err *err)
{
	uint64_t n;

	if (!bytes_to_u64(bytes_str(text), &n) || n > UINT16_MAX)
		return err_set(err, ERR_INVALID, 0, "--port %s is not a port", text);
	ret->port = (uint16_t)n;
	return 0;
}

static int take(int option, const char *value, struct agent_options *ret, struct err *err)
{
	switch (option) {
	case OPT_INIT:
		ret->init = true;
		return 0;
	case OPT_SERVE:
		ret->init = false;
		return 0;
	case OPT_PORT:
		return take_port(value, ret, err);
	case OPT_LISTEN:
		ret->listen = value;
		return 0;
	case OPT_CGROUP:
		ret->cgroup = strcmp(value, "none") == 0 ? NULL : value;
		return 0;
	case OPT_ROOT:
		ret->root = value;
		return 0;
	case OPT_USER:
		ret->user = value;
		return 0;
	case OPT_HELP:
		ret->help = true;
		return 0;
	default:
		return err_set(err, ERR_INVALID, 0, "see --help");
	}
}

int options_parse(int argc, char **argv, bool is_pid1, struct agent_options *ret, struct err *err)
{
	int option;

	*ret = (struct agent_options){
		.init = is_pid1,
		.port = AGENT_PORT,
		.root = "",
		.user = "user",
	};
	/* what the kernel's command line passes on to init is not for us */
	if (is_pid1)
		return 0;
	opterr = 0;
	optind = 1;
	while ((option = getopt_long(argc, argv, "", table, NULL)) != -1)
		if (take(option, optarg, ret, err) < 0)
			return -1;
	if (optind < argc)
		return err_set(err, ERR_INVALID, 0, "`%s`? see --help", argv[optind]);
	return 0;
}
