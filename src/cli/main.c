/* main.c - `hotcell`: the operator's command line, a client of the gateway's admin door. */
#include <getopt.h>
#include <limits.h>

#include "base/log.h"
#include "cli/admin.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "cli/lost.h"
#include "cli/network.h"
#include "cli/run.h"
#include "cli/sandboxes.h"
#include "cli/say.h"
#include "cli/snapshots.h"
#include "cli/templates.h"
#include "cli/tls.h"

#define DEFAULT_TLS_DIR       "/etc/hotcell/tls"
#define DEFAULT_IMAGES_CONF   "/etc/hotcell/images.conf"
#define DEFAULT_CODE_TEMPLATE "code-interpreter-v1"
#define DEFAULT_SOCKET        "/run/hotcell-gateway/admin.sock"

struct command {
	const char *name, *usage, *help;
	int (*run)(struct cli *c);
	int min, max; /* words behind its name */
};

static const struct command commands[] = {
	{ "teams", "teams [add NAME | rm TEAM]", "who owns sandboxes", teams_run, 0, INT_MAX },
	{ "teams", "teams limits TEAM [--sandboxes N] ...", "what all its sandboxes may have" },
	{ "keys", "keys [TEAM | add TEAM [NAME] | rm KEY]", "what teams log in with", keys_run, 0,
	  INT_MAX },
	{ "keys", "keys rotate KEY", "a new key in place of an old one, with all it has and made" },
	{ "keys", "keys limits KEY [--sandboxes N] ...",
	  "what all sandboxes of a key, and of those it made, may have" },
	{ "keys", "keys services KEY [NAME... | --none]", "services that its sandboxes may reach" },
	{ "run", "run FILE", "code in a sandbox of its own, see below; -: standard input", run_run,
	  1, 1 },
	{ "exec", "exec SANDBOX CODE", "code in a sandbox that is there; -: standard input",
	  exec_run, 2, 2 },
	{ "ps", "ps [--all]", "sandboxes that run; with paused ones", ps_run },
	{ "kill", "kill SANDBOX...", "end sandboxes", kill_run, 1, INT_MAX },
	{ "pause", "pause SANDBOX...", "put them on the disk, with their memory", pause_run, 1,
	  INT_MAX },
	{ "resume", "resume [--boot] SANDBOX...", "let them go on; or boot them from their disks",
	  resume_run, 1, INT_MAX },
	{ "fork", "fork SANDBOX [--count N]",
	  "copies of one that runs or is paused; it stays as it is", fork_run, 1, 1 },
	{ "snapshots", "snapshots [SNAPSHOT]", "what was kept of sandboxes; why one still is",
	  snapshots_run, 0, 1 },
	{ "lost", "lost [list | restore ID|FOLDER... | drop ID|FOLDER...]",
	  "what is on the disk and in no row: for a week or a day it can be brought back", lost_run,
	  0, INT_MAX },
	{ "ended", "ended", "sandboxes that are no more: when and why", ended_run },
	{ "why", "why SANDBOX", "what it is, or what became of it", why_run, 1, 1 },
	{ "explain", "explain SANDBOX [HOST[:PORT]]", "whom it may reach, and whose rule says so",
	  explain_run, 1, 2 },
	{ "egress", "egress log SANDBOX", "whom it tried to reach lately, and what became of it",
	  egress_run, 2, 2 },
	{ "templates", "templates", "what sandboxes are made from: the host's, and those of teams",
	  templates_run, 0, INT_MAX },
	{ "templates", "templates import FILE NAME",
	  "a template out of an image in a file, see below" },
	{ "templates", "templates show TEMPLATE",
	  "its builds, with times and reasons, and what holds each" },
	{ "templates", "templates logs BUILD", "what a build of a template said" },
	{ "templates", "templates cancel BUILD...", "end builds that run or wait" },
	{ "templates", "templates delete TEMPLATE...",
	  "templates of teams, by id or TEAM/NAME, for good" },
	{ "status", "status", "counts and limits of this host", status_run },
	{ "confirm-lost", "confirm-lost",
	  "sandboxes whose VMs the host does not find are lost: end them", confirm_lost_run },
	{ "tls", "tls init [DOMAIN[:PORT]]",
	  "an authority for DOMAIN alone, a certificate of it, and how to trust it", tls_run, 1,
	  INT_MAX },
	{ "tls", "tls renew", "what `tls init` made, when less than a third of its life is left" },
	{ "tls", "tls install NAME FULLCHAIN PRIVKEY", "a certificate of your own, checked" },
	{ "tls", "tls status", "certificates: names, issuer, days that are left" },
	{ "doctor", "doctor [--leaks]", "can this host run sandboxes? is anything left over?",
	  doctor_run },
};

enum { OPTION_FIRST = 256 }; /* behind every character that getopt returns */

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
		"\noptions of templates import; FILE is what `docker save` or `skopeo copy IMAGE\n"
		"oci-archive:FILE` writes\n"
		"  --team TEAM       whose it is; without it there may be one team only\n"
		"  --public          all teams may use it\n"
		"  --cpus N, --memory MIB\n"
		"  --start-command COMMAND  runs in all sandboxes: it is in the snapshot\n"
		"  --ready-command COMMAND  succeeds when what was started may be frozen\n"
		"  --tag TAG         beside `default`\n"
		"\noptions of run and exec, which ask as clients do: E2B_API_KEY, E2B_DOMAIN or\n"
		"E2B_API_URL and E2B_SANDBOX_URL, SSL_CERT_FILE\n"
		"  --lang LANGUAGE   python, javascript, typescript, bash, r, java, or another "
		"that\n"
		"                    the template has; of run: what the file's ending says\n"
		"  --context ID      in this one, which keeps what code before it defined\n"
		"  --env NAME=VALUE  for this code alone; may be given again\n"
		"  --timeout S       interrupt it after so many seconds, 300\n"
		"  --out DIR         where pictures, pages and charts are written, here\n"
		"  --json            all that comes, one event in a line; files only with --out\n"
		"  --sandbox ID      of run: in this one\n"
		"  --template NAME   of run: in a new one of it, " DEFAULT_CODE_TEMPLATE "\n"
		"  --keep            of run: the new sandbox stays\n"
		"\noptions of tls\n"
		"  --tls-dir DIR     the gateway's tls_dir, " DEFAULT_TLS_DIR "\n"
		"  --owner USER      who alone may read the keys of servers, hotcell-signer\n"
		"\noptions of doctor, as in warden's configuration\n"
		"  --state DIR       its state_dir, /var/lib/hotcell\n"
		"  --data DIR        node's data_dir, /var/lib/hotcell-node\n"
		"  --cgroup NAME     its cgroup, hotcell\n"
		"  --uid-base N      its uid_base, 786432\n"
		"  --uids N          its vms_max, 1024\n"
		"  --qemu PATH       its qemu, /usr/bin/qemu-system-x86_64\n"
		"  --images-conf FILE  the images daemon's, " DEFAULT_IMAGES_CONF "\n"
		"\nexit status\n"
		"  0 fine, 1 refused or failed, 2 wrong usage, 3 the server does not answer\n");
}

enum option_kind { OPTION_FLAG, OPTION_TEXT, OPTION_NUMBER, OPTION_ENV };

static const struct {
	const char *name;
	enum option_kind kind;
	size_t at; /* in struct cli: a bool, a text, or a number */
} options[] = {
#define OPTION(name, kind, member) { name, OPTION_##kind, offsetof(struct cli, member) }
	OPTION("json", FLAG, json),
	OPTION("help", FLAG, help),
	OPTION("version", FLAG, version),
	OPTION("socket", TEXT, socket),
	OPTION("leaks", FLAG, leaks),
	OPTION("all", FLAG, all),
	OPTION("none", FLAG, none),
	OPTION("boot", FLAG, boot),
	OPTION("count", NUMBER, count),
	OPTION("team", TEXT, team),
	OPTION("public", FLAG, public),
	OPTION("cpus", TEXT, cpus),
	OPTION("tag", TEXT, tag),
	OPTION("start-command", TEXT, start),
	OPTION("ready-command", TEXT, ready),
	OPTION("sandboxes", TEXT, limits[LIMIT_SANDBOXES]),
	OPTION("vcpus", TEXT, limits[LIMIT_VCPUS]),
	OPTION("memory", TEXT, limits[LIMIT_MEMORY]),
	OPTION("disk", TEXT, limits[LIMIT_DISK]),
	OPTION("paused", TEXT, limits[LIMIT_PAUSED]),
	OPTION("lang", TEXT, lang),
	OPTION("context", TEXT, context),
	OPTION("sandbox", TEXT, sandbox),
	OPTION("template", TEXT, template),
	OPTION("out", TEXT, out),
	OPTION("env", ENV, envs),
	OPTION("timeout", NUMBER, timeout),
	OPTION("keep", FLAG, keep),
	OPTION("tls-dir", TEXT, tls_dir),
	OPTION("owner", TEXT, owner),
	OPTION("state", TEXT, state_dir),
	OPTION("data", TEXT, data_dir),
	OPTION("cgroup", TEXT, cgroup),
	OPTION("uid-base", NUMBER, uid_base),
	OPTION("uids", NUMBER, uids),
	OPTION("qemu", TEXT, qemu),
	OPTION("images-conf", TEXT, images_conf),
#undef OPTION
};

static bool number(const char *text, uint64_t *ret)
{
	if (bytes_to_u64(bytes_str(text), ret) && *ret <= UINT32_MAX)
		return true;
	fprintf(stderr, "hotcell: `%s` is not a number\n", text);
	return false;
}

static bool add_env(struct cli *c, const char *given)
{
	const char *equals = strchr(given, '=');

	if (equals && equals > given && c->n_envs < CLI_ENVS_MAX) {
		c->envs[c->n_envs++] = given;
		return true;
	}
	fprintf(stderr, "hotcell: `%s` is not NAME=VALUE, or one too many\n", given);
	return false;
}

static bool take_option(struct cli *c, size_t i, const char *given)
{
	char *at = (char *)c + options[i].at;
	uint64_t n;

	switch (options[i].kind) {
	case OPTION_FLAG:
		memcpy(at, &(bool){ true }, sizeof(bool));
		return true;
	case OPTION_TEXT:
		memcpy(at, &given, sizeof(given));
		return true;
	case OPTION_NUMBER:
		if (!number(given, &n))
			return false;
		memcpy(at, &n, sizeof(n));
		return true;
	case OPTION_ENV:
		return add_env(c, given);
	}
	abort();
}

/* -1: go on. Otherwise the exit status. */
static int take_options(struct cli *c, int argc, char **argv)
{
	struct option known[COUNT(options) + 1] = { 0 };
	int i;

	for (size_t k = 0; k < COUNT(options); k++)
		known[k] = (struct option){ options[k].name,
					    options[k].kind == OPTION_FLAG ? no_argument
									   : required_argument,
					    NULL, OPTION_FIRST + (int)k };
	while ((i = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		if (i < OPTION_FIRST) {
			fprintf(stderr, "  more: hotcell --help\n");
			return CLI_USAGE;
		}
		if (!take_option(c, (size_t)(i - OPTION_FIRST), optarg))
			return CLI_USAGE;
		if (c->help)
			help(stdout);
		if (c->version)
			printf("hotcell %s\n", HOTCELL_RELEASE);
		if (c->help || c->version)
			return CLI_FINE;
	}
	return -1;
}

static bool options_fit_code(const struct cli *c, const struct command *to)
{
	bool run = to->run == run_run, exec = to->run == exec_run;

	if ((c->lang || c->context || c->out || c->n_envs || c->timeout) && !run && !exec)
		return false;
	if ((c->sandbox || c->template || c->keep) && !run)
		return false;
	return !(c->lang && c->context) && !(c->sandbox && (c->template || c->keep)) &&
	       (!run || !c->context || c->sandbox);
}

/* An option of another command is a mistake, not something to pass over. */
static bool options_fit(const struct cli *c, const struct command *to)
{
	const char *word = c->n_words > 0 ? c->words[0] : "";
	bool limits = (to->run == keys_run || to->run == teams_run) && !strcmp(word, "limits");
	bool services = to->run == keys_run && !strcmp(word, "services");
	bool import = to->run == templates_run && !strcmp(word, "import");

	if (!options_fit_code(c, to))
		return false;
	for (size_t i = 0; i < CLI_LIMITS; i++)
		if (c->limits[i] && !limits && !(import && i == LIMIT_MEMORY))
			return false;
	if ((c->team || c->public || c->cpus || c->tag || c->start || c->ready) && !import)
		return false;
	if ((c->tls_dir || c->owner) && to->run != tls_run)
		return false;
	if (c->none && !services)
		return false;
	return (!c->leaks || to->run == doctor_run) && (!c->all || to->run == ps_run) &&
	       (!c->boot || to->run == resume_run) && (!c->count || to->run == fork_run);
}

static int run(struct cli *c, const char *name)
{
	for (size_t i = 0; i < COUNT(commands); i++) {
		const struct command *to = &commands[i];

		if (strcmp(name, to->name) != 0)
			continue;
		if (c->n_words < to->min || c->n_words > to->max || !options_fit(c, to))
			return cli_usage(to->usage);
		c->tls_dir = c->tls_dir ?: DEFAULT_TLS_DIR;
		c->template = c->template ?: DEFAULT_CODE_TEMPLATE;
		return to->run(c);
	}
	fprintf(stderr, "hotcell: there is no command `%s`\n  fix: hotcell --help\n", name);
	return CLI_USAGE;
}

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

int main(int argc, char **argv)
{
	struct cli c = { .socket = getenv("HOTCELL_ADMIN_SOCKET"),
			 .state_dir = "/var/lib/hotcell",
			 .data_dir = "/var/lib/hotcell-node",
			 .cgroup = "hotcell",
			 .qemu = "/usr/bin/qemu-system-x86_64",
			 .images_conf = DEFAULT_IMAGES_CONF,
			 .uid_base = 786432,
			 .uids = 1024,
			 .e2b = { variable("E2B_API_KEY"), variable("E2B_DOMAIN"),
				  variable("E2B_API_URL"), variable("E2B_SANDBOX_URL"),
				  variable("SSL_CERT_FILE") } };
	int status;

	log_init("hotcell", LOG_WARN);
	if (!c.socket || !*c.socket)
		c.socket = DEFAULT_SOCKET;
	status = take_options(&c, argc, argv);
	if (status >= 0)
		return status;
	if (optind == argc) {
		help(stderr);
		return CLI_USAGE;
	}
	c.words = argv + optind + 1;
	c.n_words = argc - optind - 1;
	return run(&c, argv[optind]);
}
