/* main.c - `hotcell`: the operator's command line, a client of the gateway's admin door. */
#include <getopt.h>

#include "base/log.h"
#include "cli/admin.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/lost.h"
#include "cli/network.h"
#include "cli/sandboxes.h"
#include "cli/say.h"
#include "cli/snapshots.h"

#define DEFAULT_SOCKET "/run/hotcell-gateway/admin.sock"

struct command {
	const char *name, *usage, *help;
	int (*run)(struct cli *c, int argc, char **argv); /* argv[0] is the command's name */
};

static const struct command commands[] = {
	{ "teams", "teams [add NAME | rm TEAM]", "who owns sandboxes", teams_run },
	{ "teams", "teams limits TEAM [--sandboxes N] ...", "what all its sandboxes may have",
	  NULL },
	{ "keys", "keys [TEAM | add TEAM [NAME] | rm KEY]", "what teams log in with", keys_run },
	{ "keys", "keys rotate KEY", "a new key in place of an old one, with all it has and made",
	  NULL },
	{ "keys", "keys limits KEY [--sandboxes N] ...",
	  "what all sandboxes of a key, and of those it made, may have", NULL },
	{ "keys", "keys services KEY [NAME... | --none]", "services that its sandboxes may reach",
	  NULL },
	{ "ps", "ps [--all]", "sandboxes that run; with paused ones", ps_run },
	{ "kill", "kill SANDBOX...", "end sandboxes", kill_run },
	{ "pause", "pause SANDBOX...", "put them on the disk, with their memory", pause_run },
	{ "resume", "resume [--boot] SANDBOX...", "let them go on; or boot them from their disks",
	  resume_run },
	{ "fork", "fork SANDBOX [--count N]",
	  "copies of one that runs or is paused; it stays as it is", fork_run },
	{ "snapshots", "snapshots [SNAPSHOT]", "what was kept of sandboxes; why one still is",
	  snapshots_run },
	{ "lost", "lost [list | restore ID|FOLDER... | drop ID|FOLDER...]",
	  "what is on the disk and in no row: for a week or a day it can be brought back",
	  lost_run },
	{ "ended", "ended", "sandboxes that are no more: when and why", ended_run },
	{ "why", "why SANDBOX", "what it is, or what became of it", why_run },
	{ "explain", "explain SANDBOX [HOST[:PORT]]", "whom it may reach, and whose rule says so",
	  explain_run },
	{ "egress", "egress log SANDBOX", "whom it tried to reach lately, and what became of it",
	  egress_run },
	{ "templates", "templates", "what sandboxes are made from", templates_run },
	{ "status", "status", "counts and limits of this host", status_run },
	{ "confirm-lost", "confirm-lost",
	  "sandboxes whose VMs the host does not find are lost: end them", confirm_lost_run },
	{ "doctor", "doctor [--leaks]", "can this host run sandboxes? is anything left over?",
	  doctor_run },
};

static void help(FILE *out)
{
	fprintf(out, "usage: hotcell [options] COMMAND\n\n");
	for (size_t i = 0; i < COUNT(commands); i++)
		fprintf(out, "  %-40s %s\n", commands[i].usage, commands[i].help);
	fprintf(out,
		"\noptions\n"
		"  --json            answer in JSON; errors too, on standard error\n"
		"  --socket PATH     the gateway's admin socket; HOTCELL_ADMIN_SOCKET, or\n"
		"                    " DEFAULT_SOCKET "\n"
		"  --help, --version\n"
		"\noptions of teams limits and keys limits; 0: no limit\n"
		"  --sandboxes N, --vcpus N, --memory MIB, --disk MIB, --paused N\n"
		"\noptions of doctor, as in warden's configuration\n"
		"  --state DIR       its state_dir, /var/lib/hotcell\n"
		"  --data DIR        node's data_dir, /var/lib/hotcell-node\n"
		"  --cgroup NAME     its cgroup, hotcell\n"
		"  --uid-base N      its uid_base, 786432\n"
		"  --uids N          its vms_max, 1024\n"
		"  --qemu PATH       its qemu, /usr/bin/qemu-system-x86_64\n"
		"\nexit status\n"
		"  0 fine, 1 refused or failed, 2 wrong usage, 3 the server does not answer\n");
}

enum option_code {
	OPT_JSON = 256,
	OPT_SOCKET,
	OPT_LEAKS,
	OPT_ALL,
	OPT_NONE,
	OPT_BOOT,
	OPT_COUNT,
	OPT_SANDBOXES, /* in the order of enum cli_limit */
	OPT_VCPUS,
	OPT_MEMORY,
	OPT_DISK,
	OPT_PAUSED,
	OPT_STATE,
	OPT_DATA,
	OPT_CGROUP,
	OPT_UID_BASE,
	OPT_UIDS,
	OPT_QEMU,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "leaks", no_argument, NULL, OPT_LEAKS },
	{ "all", no_argument, NULL, OPT_ALL },
	{ "none", no_argument, NULL, OPT_NONE },
	{ "boot", no_argument, NULL, OPT_BOOT },
	{ "count", required_argument, NULL, OPT_COUNT },
	{ "sandboxes", required_argument, NULL, OPT_SANDBOXES },
	{ "vcpus", required_argument, NULL, OPT_VCPUS },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "disk", required_argument, NULL, OPT_DISK },
	{ "paused", required_argument, NULL, OPT_PAUSED },
	{ "state", required_argument, NULL, OPT_STATE },
	{ "data", required_argument, NULL, OPT_DATA },
	{ "cgroup", required_argument, NULL, OPT_CGROUP },
	{ "uid-base", required_argument, NULL, OPT_UID_BASE },
	{ "uids", required_argument, NULL, OPT_UIDS },
	{ "qemu", required_argument, NULL, OPT_QEMU },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 },
};

static int number(const char *text, uint64_t *ret)
{
	if (bytes_to_u64(bytes_str(text), ret) && *ret <= UINT32_MAX)
		return 0;
	fprintf(stderr, "hotcell: `%s` is not a number\n", text);
	return -1;
}

/* -1: go on. Otherwise the exit status. */
static int take_option(struct cli *c, int option)
{
	switch (option) {
	case OPT_JSON:
		c->json = true;
		return -1;
	case OPT_SOCKET:
		c->socket = optarg;
		return -1;
	case OPT_LEAKS:
		c->leaks = true;
		return -1;
	case OPT_ALL:
		c->all = true;
		return -1;
	case OPT_NONE:
		c->none = true;
		return -1;
	case OPT_BOOT:
		c->boot = true;
		return -1;
	case OPT_COUNT:
		return number(optarg, &c->count) < 0 ? CLI_USAGE : -1;
	case OPT_SANDBOXES:
	case OPT_VCPUS:
	case OPT_MEMORY:
	case OPT_DISK:
	case OPT_PAUSED:
		c->limits[option - OPT_SANDBOXES] = optarg;
		return -1;
	case OPT_STATE:
		c->state_dir = optarg;
		return -1;
	case OPT_DATA:
		c->data_dir = optarg;
		return -1;
	case OPT_CGROUP:
		c->cgroup = optarg;
		return -1;
	case OPT_QEMU:
		c->qemu = optarg;
		return -1;
	case OPT_UID_BASE:
		return number(optarg, &c->uid_base) < 0 ? CLI_USAGE : -1;
	case OPT_UIDS:
		return number(optarg, &c->uids) < 0 ? CLI_USAGE : -1;
	case OPT_HELP:
		help(stdout);
		return CLI_FINE;
	case OPT_VERSION:
		printf("hotcell %s\n", HOTCELL_RELEASE);
		return CLI_FINE;
	default:
		fprintf(stderr, "  more: hotcell --help\n");
		return CLI_USAGE;
	}
}

/* An option of another command is a mistake, not something to pass over. */
static bool options_fit(const struct cli *c, const struct command *to, int argc, char **argv)
{
	bool limits = argc >= 2 && (to->run == keys_run || to->run == teams_run) &&
		      !strcmp(argv[1], "limits");
	bool services = argc >= 2 && to->run == keys_run && !strcmp(argv[1], "services");

	for (size_t i = 0; i < CLI_LIMITS; i++)
		if (c->limits[i] && !limits)
			return false;
	if (c->none && !services)
		return false;
	return (!c->leaks || to->run == doctor_run) && (!c->all || to->run == ps_run) &&
	       (!c->boot || to->run == resume_run) && (!c->count || to->run == fork_run);
}

static int run(struct cli *c, int argc, char **argv)
{
	if (argc < 1) {
		help(stderr);
		return CLI_USAGE;
	}
	for (size_t i = 0; i < COUNT(commands); i++) {
		if (strcmp(argv[0], commands[i].name) != 0)
			continue;
		if (!options_fit(c, &commands[i], argc, argv))
			return cli_usage(c, commands[i].usage);
		return commands[i].run(c, argc, argv);
	}
	fprintf(stderr, "hotcell: there is no command `%s`\n  fix: hotcell --help\n", argv[0]);
	return CLI_USAGE;
}

int main(int argc, char **argv)
{
	struct cli c = { .socket = getenv("HOTCELL_ADMIN_SOCKET"),
			 .state_dir = "/var/lib/hotcell",
			 .data_dir = "/var/lib/hotcell-node",
			 .cgroup = "hotcell",
			 .qemu = "/usr/bin/qemu-system-x86_64",
			 .uid_base = 786432,
			 .uids = 1024 };
	int option;

	log_init("hotcell", LOG_WARN);
	if (!c.socket || !*c.socket)
		c.socket = DEFAULT_SOCKET;
	while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		int status = take_option(&c, option);

		if (status >= 0)
			return status;
	}
	return run(&c, argc - optind, argv + optind);
}
