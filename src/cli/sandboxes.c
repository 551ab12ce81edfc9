/* sandboxes.c - the commands about sandboxes: ps, kill, pause, resume, ended, why. */
#include "cli/sandboxes.h"

#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/table.h"

static const struct column sandbox_columns[] = {
	{ "SANDBOX", "sandboxID" }, { "TEAM", "teamID" },   { "TEMPLATE", "templateID" },
	{ "STATE", "state" },       { "CPUS", "cpuCount" }, { "MIB", "memoryMB" },
	{ "STARTED", "startedAt" }, { "ENDS", "endAt" },    { "STALLED", "stalled" }
};
static const struct column ended_columns[] = {
	{ "SANDBOX", "sandboxID" }, { "TEAM", "teamID" },   { "TEMPLATE", "templateID" },
	{ "STARTED", "startedAt" }, { "ENDED", "endedAt" }, { "WHY", "reason" }
};

int ps_run(struct cli *c, int argc, char **argv)
{
	(void)argv;
	if (argc != 1)
		return cli_usage(c, "ps [--all]");
	return cli_show(c, c->all ? "/admin/sandboxes" : "/admin/sandboxes?state=running",
			sandbox_columns, COUNT(sandbox_columns));
}

int ended_run(struct cli *c, int argc, char **argv)
{
	(void)argv;
	if (argc != 1)
		return cli_usage(c, "ended");
	return cli_show(c, "/admin/ended", ended_columns, COUNT(ended_columns));
}

/* METHOD /admin/sandboxes/ID suffix, whatever it answers. */
static int ask_of(const struct cli *c, const char *method, const char *id, const char *suffix,
		  const json_t *body)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (cli_target(target, "/admin/sandboxes/", id, suffix, "", &err) == 0 &&
	    cli_ask(c, method, target, body, &answer, &err) == 0)
		return CLI_FINE;
	err_wrap(&err, "%.64s", id);
	return cli_fail(c, &err);
}

static int kill_one(const struct cli *c, const char *id)
{
	return ask_of(c, "DELETE", id, "", NULL);
}

static int pause_one(const struct cli *c, const char *id)
{
	return ask_of(c, "POST", id, "/pause", NULL);
}

static int resume_one(const struct cli *c, const char *id)
{
	AUTO(json_decrefp) json_t *body = json_pack("{s:b}", "memory", !c->boot);

	return body ? ask_of(c, "POST", id, "/resume", body) : CLI_FAILED;
}

int kill_run(struct cli *c, int argc, char **argv)
{
	if (argc < 2)
		return cli_usage(c, "kill SANDBOX...");
	return cli_each(c, argc - 1, argv + 1, "killed", kill_one);
}

int pause_run(struct cli *c, int argc, char **argv)
{
	if (argc < 2)
		return cli_usage(c, "pause SANDBOX...");
	return cli_each(c, argc - 1, argv + 1, "paused", pause_one);
}

int resume_run(struct cli *c, int argc, char **argv)
{
	if (argc < 2)
		return cli_usage(c, "resume [--boot] SANDBOX...");
	return cli_each(c, argc - 1, argv + 1, "resumed", resume_one);
}

static const char *text_of(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s ? s : "?";
}

/* What a reason means, for a person. */
static const char *meaning(const char *reason)
{
	static const char *const means[][2] = {
		{ "killed", "somebody killed it" },
		{ "lifetime", "its time was over" },
		{ "oom_guest", "its own memory was full" },
		{ "oom_host", "the host's memory was full" },
		{ "disk_full", "the host's disk was full until its time was over" },
		{ "guest_panic", "its kernel crashed" },
		{ "vmm_crash", "its QEMU ended" },
		{ "node_lost", "the host or its daemons went down while it could not be kept" },
		{ "evicted", "an operator ended it" },
	};

	for (size_t i = 0; i < COUNT(means); i++)
		if (!strcmp(reason, means[i][0]))
			return means[i][1];
	return "no reason is known";
}

/* Why one that is not ended does not run, if so. */
static const char *standstill(const json_t *o)
{
	if (!json_object_get(o, "stalled"))
		return "";
	if (!strcmp(text_of(o, "stalled"), "vm_absent"))
		return "; the host does not find its VM: it is kept until it is found, or "
		       "certainly "
		       "lost (hotcell doctor)";
	return "; it stands still: the host's disk is full, and it goes on when there is room";
}

static void say_why(const json_t *o, const char *id)
{
	const char *state = text_of(o, "state");

	if (!strcmp(state, "ended"))
		printf("%s ended %s: %s (%s)\n", id, text_of(o, "endedAt"), text_of(o, "reason"),
		       meaning(text_of(o, "reason")));
	else if (!strcmp(state, "paused"))
		printf("%s is paused since %s\n", id, text_of(o, "pausedAt"));
	else
		printf("%s is %s, until %s%s\n", id, state, text_of(o, "endAt"), standstill(o));
}

int why_run(struct cli *c, int argc, char **argv)
{
	AUTO(json_decrefp) json_t *answer = NULL;
	char target[TARGET_MAX];
	struct err err = { 0 };

	if (argc != 2)
		return cli_usage(c, "why SANDBOX");
	if (cli_target(target, "/admin/sandboxes/", argv[1], "/why", "", &err) < 0 ||
	    cli_ask(c, "GET", target, NULL, &answer, &err) < 0)
		return cli_fail(c, &err);
	if (c->json)
		return cli_print_json(answer);
	say_why(answer, argv[1]);
	return CLI_FINE;
}
