/* templates.c - what sandboxes are made from, and what builds of templates said. */
#include "cli/templates.h"

#include <stdio.h>

#include "cli/ask.h"
#include "cli/import.h"
#include "cli/say.h"
#include "cli/table.h"

enum { LOG_PAGES_MAX = 1000 }; /* more than a log can have */

static const char usage[] = "templates [logs BUILD | cancel BUILD... | delete TEMPLATE... | "
			    "import FILE NAME [--team TEAM] [--public] [--cpus N] [--memory MIB]]";

static const struct column template_columns[] = {
	{ "TEMPLATE", "templateID" }, { "ALIAS", "alias" },           { "CPUS", "cpuCount" },
	{ "MIB", "memoryMB" },        { "STATE", "buildStatus" },     { "POOL", "poolReady" },
	{ "WANTED", "poolWanted" },   { "POOL MIB", "poolMemoryMB" }, { "MESSAGE", "message" },
	{ "TEAM", "teamID" },         { "PUBLIC", "public" },         { "BUILD", "buildID" },
	{ "BUILDS", "buildCount" },   { "SANDBOXES", "sandboxes" }
};

static const struct column build_columns[] = { { "BUILD", "buildID" },
					       { "TEMPLATE", "templateID" },
					       { "STATE", "status" },
					       { "STEP", "reason.step" },
					       { "REASON", "reason.message" } };

static const struct column line_columns[] = {
	{ "TIME", "timestamp" }, { "LEVEL", "level" }, { "STEP", "step" }, { "MESSAGE", "message" }
};

static const char *text_of(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s ? s : "";
}

/* One of a user has its name and its newest build where the host's have theirs. */
static void flatten(json_t *t)
{
	static const char *const members[] = { "cpuCount", "memoryMB", "buildID" };
	const json_t *b = json_object_get(t, "build");

	if (!json_object_get(t, "name"))
		return;
	(void)json_object_set_new(
		t, "alias", json_sprintf("%s/%s", text_of(t, "namespace"), text_of(t, "name")));
	for (size_t i = 0; i < COUNT(members); i++)
		(void)json_object_set(t, members[i], json_object_get(b, members[i]));
	(void)json_object_set(t, "buildStatus", json_object_get(b, "status"));
}

static int say_all(const struct cli *c, const json_t *all)
{
	json_t *t;
	size_t i;

	(void)c;
	json_array_foreach(all, i, t) flatten(t);
	table_print(stdout, all, template_columns, COUNT(template_columns));
	return CLI_FINE;
}

int build_page(const struct cli *c, const char *build, size_t from, json_t *all, json_t **ret,
	       struct err *err)
{
	char offset[48];
	const struct cli_request rq = { .path = "/admin/builds/", .id = build, .suffix = offset };

	snprintf(offset, sizeof(offset), "?logsOffset=%zu&limit=100", from);
	if (cli_ask(c, &rq, ret, err) < 0)
		return -1;
	if (json_array_extend(all, json_object_get(*ret, "logEntries")) < 0)
		return err_set(err, ERR_INTERNAL, 0, "the gateway's answer has no log");
	return 0;
}

static int say_log(const struct cli *c)
{
	AUTO(json_decrefp) json_t *all = json_array(), *build = NULL, *rows = NULL;
	struct err err = { 0 };

	for (size_t page = 0, before = 1; page < LOG_PAGES_MAX && before > 0; page++) {
		size_t from = json_array_size(all);

		json_decref(TAKE(build));
		if (build_page(c, c->words[1], from, all, &build, &err) < 0)
			return cli_fail(c, &err);
		before = json_array_size(all) - from;
	}
	(void)json_object_set(build, "logEntries", all);
	if (c->json)
		return cli_print_json(build);
	rows = json_pack("[O]", build);
	table_print(stdout, rows, build_columns, COUNT(build_columns));
	printf("\n");
	table_print(stdout, all, line_columns, COUNT(line_columns));
	return CLI_FINE;
}

int templates_run(struct cli *c)
{
	if (c->n_words == 0)
		return cli_answer(c, &(struct cli_request){ .path = "/admin/templates" }, say_all);
	if (cli_says(c, "import", 2, 2))
		return import_run(c);
	if (cli_says(c, "logs", 1, 1))
		return say_log(c);
	if (cli_says(c, "cancel", 1, c->n_words))
		return cli_each(c, 1, "cancelled",
				(struct cli_request){ "DELETE", "/admin/builds/" });
	if (cli_says(c, "delete", 1, c->n_words))
		return cli_each(c, 1, "deleted",
				(struct cli_request){ "DELETE", "/admin/templates/" });
	return cli_usage(usage);
}
