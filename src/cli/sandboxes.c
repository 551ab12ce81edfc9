/* sandboxes.c - the commands about sandboxes: ps, kill, pause, resume, ended, why. */
#include "cli/sandboxes.h"

#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/teams.h"
#include "cli/usage.h"

static const struct column sandbox_columns[] = {
	{ "SANDBOX", "sandboxID" },
	{ "TEAM", "team", 14 },
	{ "TEMPLATE", "template", 18 },
	{ "STATE", "state" },
	{ "CPUS", "cpuCount" },
	{ "MEMORY", "memoryMB", .kind = COLUMN_MIB },
	{ "STARTED", "startedAt", .kind = COLUMN_WHEN },
	{ "ENDS", "ends", .kind = COLUMN_WHEN },
};
static const struct column ended_columns[] = {
	{ "SANDBOX", "sandboxID" },
	{ "TEAM", "team", 14 },
	{ "TEMPLATE", "templateID", 18 },
	{ "STARTED", "startedAt", .kind = COLUMN_WHEN },
	{ "ENDED", "endedAt", .kind = COLUMN_WHEN },
	{ "WHY", "reason" },
};

static void set_text(json_t *row, const char *name, const char *text)
{
	json_object_set_new(row, name, json_text(bytes_str(text)));
}

/* One that is paused has no end: what the API calls that is when it was paused. */
void sandboxes_for_people(const struct cli *c, json_t *rows)
{
	json_t *row;
	size_t i;

	teams_name(c, rows);
	json_array_foreach(rows, i, row)
	{
		const json_t *alias = json_object_get(row, "alias");
		const char *state = json_string_value(json_object_get(row, "state"));
		const char *stalled = json_string_value(json_object_get(row, "stalled"));
		bool paused = state && strcmp(state, "paused") == 0;

		json_object_set(row, "template",
				json_is_string(alias) ? json_object_get(row, "alias")
						      : json_object_get(row, "templateID"));
		if (paused)
			set_text(row, "ends", "when killed");
		else
			json_object_set(row, "ends", json_object_get(row, "endAt"));
		if (stalled)
			json_object_set_new(row, "state", json_sprintf("stalled: %s", stalled));
	}
}

int ps_run(struct cli *c)
{
	const struct cli_request rq = { .path = c->all ? "/admin/sandboxes"
						       : "/admin/sandboxes?state=running" };
	AUTO(json_decrefp) json_t *rows = NULL;
	struct err err = { 0 };

	if (c->usage)
		return usage_run(c);
	if (c->sort)
		return cli_usage(c);
	if (cli_list(c, &rq, &rows, &err) < 0)
		return cli_fail(c, &err);
	if (!c->json)
		sandboxes_for_people(c, rows);
	return cli_show_rows(c, rows, sandbox_columns, COUNT(sandbox_columns));
}

int ended_run(struct cli *c)
{
	return teams_show(c, &(struct cli_request){ .path = "/admin/ended" }, ended_columns,
			  COUNT(ended_columns));
}

int kill_run(struct cli *c)
{
	return cli_each(c, 0, "killed", (struct cli_request){ "DELETE", "/admin/sandboxes/" });
}

int pause_run(struct cli *c)
{
	return cli_each(c, 0, "paused",
			(struct cli_request){ "POST", "/admin/sandboxes/", .suffix = "/pause" });
}

int resume_run(struct cli *c)
{
	AUTO(json_decrefp) json_t *body = json_pack("{s:b}", "memory", !c->boot);
	const struct cli_request rq = { "POST", "/admin/sandboxes/", .suffix = "/resume",
					.body = body };

	return body ? cli_each(c, 0, "resumed", rq) : CLI_FAILED;
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

static int say_why(const struct cli *c, const json_t *o)
{
	const char *state = text_of(o, "state"), *id = c->words[0];

	if (!strcmp(state, "ended"))
		printf("%s ended %s: %s (%s)\n", id, text_of(o, "endedAt"), text_of(o, "reason"),
		       meaning(text_of(o, "reason")));
	else if (!strcmp(state, "paused"))
		printf("%s is paused since %s\n", id, text_of(o, "pausedAt"));
	else
		printf("%s is %s, until %s%s\n", id, state, text_of(o, "endAt"), standstill(o));
	return CLI_FINE;
}

int why_run(struct cli *c)
{
	const struct cli_request rq = { .path = "/admin/sandboxes/",
					.id = c->words[0],
					.suffix = "/why" };

	return cli_answer(c, &rq, say_why);
}
