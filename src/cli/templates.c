/* templates.c - what sandboxes are made from, and what builds of templates said. */
#include "cli/templates.h"

#include <stdio.h>

#include "cli/ask.h"
#include "cli/import.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/templates_say.h"

enum { LOG_PAGES_MAX = 1000 }; /* more than a log can have */

static const struct column build_columns[] = { { "BUILD", "buildID" },
					       { "TEMPLATE", "templateID" },
					       { "STATE", "status" },
					       { "STEP", "reason.step" },
					       { "REASON", "reason.message" } };

static const struct column line_columns[] = {
	{ "TIME", "timestamp" }, { "LEVEL", "level" }, { "STEP", "step" }, { "MESSAGE", "message" }
};

/* NULL: there is none, or several; *err. An id, TEAM/NAME, an alias, or a name that one has. */
static json_t *find(json_t *all, const char *name, struct err *err)
{
	char full[TEMPLATE_NAME_SIZE];
	json_t *t, *found = NULL;
	size_t i, n = 0;

	json_array_foreach(all, i, t)
	{
		templates_name(t, full);
		if (strcmp(name, templates_text(t, "templateID")) == 0 || strcmp(name, full) == 0)
			return t;
		if (strcmp(name, templates_text(t, "name")) == 0) {
			found = t;
			n++;
		}
	}
	if (n == 1)
		return found;
	err_set(err, n ? ERR_INVALID : ERR_NOT_FOUND, 0,
		n ? "%zu teams have a template %.100s: say TEAM/NAME"
		  : "%zu templates are called %.100s",
		n, name);
	return NULL;
}

static int ask_all(const struct cli *c, json_t **ret, struct err *err)
{
	return cli_ask(c, &(struct cli_request){ .path = "/admin/templates" }, ret, err);
}

static int say_all(const struct cli *c)
{
	AUTO(json_decrefp) json_t *all = NULL;
	struct err err = { 0 };

	if (ask_all(c, &all, &err) < 0)
		return cli_fail(c, &err);
	if (c->json)
		return cli_print_json(all);
	templates_say_all(all);
	return CLI_FINE;
}

/* The host's are told whole in the list. */
static int say_one(const struct cli *c)
{
	AUTO(json_decrefp) json_t *all = NULL, *one = NULL;
	struct cli_request rq = { .path = "/admin/templates/" };
	struct err err = { 0 };
	json_t *t = NULL;

	if (ask_all(c, &all, &err) == 0)
		t = find(all, c->words[1], &err);
	rq.id = t ? templates_text(t, "templateID") : NULL;
	if (t && !templates_text(t, "name")[0])
		one = json_incref(t);
	else if (t && cli_ask(c, &rq, &one, &err) < 0)
		t = NULL;
	if (!t)
		return cli_fail(c, &err);
	if (c->json)
		return cli_print_json(one);
	templates_say_one(one);
	return CLI_FINE;
}

/* A word TEAM/NAME stands for an id, which is what can be asked for. */
static int delete_all(struct cli *c)
{
	AUTO(json_decrefp) json_t *all = NULL;
	struct err err = { 0 };

	for (int i = 1; i < c->n_words; i++) {
		const json_t *t;

		if (!strchr(c->words[i], '/'))
			continue;
		if (!all && ask_all(c, &all, &err) < 0)
			return cli_fail(c, &err);
		t = find(all, c->words[i], &err);
		if (!t)
			return cli_fail(c, &err);
		c->words[i] = (char *)(uintptr_t)templates_text(t, "templateID");
	}
	return cli_each(c, 1, "deleted", (struct cli_request){ "DELETE", "/admin/templates/" });
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
		return say_all(c);
	if (cli_says(c, "show", 1, 1))
		return say_one(c);
	if (cli_says(c, "import", 2, 2))
		return import_run(c);
	if (cli_says(c, "logs", 1, 1))
		return say_log(c);
	if (cli_says(c, "cancel", 1, c->n_words))
		return cli_each(c, 1, "cancelled",
				(struct cli_request){ "DELETE", "/admin/builds/" });
	if (cli_says(c, "delete", 1, c->n_words))
		return delete_all(c);
	return cli_usage(c);
}
