/* snapshots.c - the commands about copies: snapshots, fork. */
#include "cli/snapshots.h"

#include "base/folder.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/teams.h"

static const struct column snapshot_columns[] = {
	{ "SNAPSHOT", "snapshotID" },
	{ "TEAM", "team", 14 },
	{ "NAME", "name" },
	{ "TAG", "tag" },
	{ "OF", "sandboxID" },
	{ "FROM", "parentID" },
	{ "CREATED", "createdAt", .kind = COLUMN_WHEN },
	{ "MEMORY", "memoryBytes", .kind = COLUMN_BYTES },
	{ "DISK", "diskBytes", .kind = COLUMN_BYTES },
	{ "SANDBOXES", "sandboxes" },
	{ "HIDDEN", "hidden" },
	{ "POOL", "poolReady" },
	{ "WANTED", "poolWanted" },
};

static const struct column why_columns[] = { { "KEPT BECAUSE", "why" } };

/* Each reason on a line. */
static int say_why(const struct cli *c, const char *id)
{
	const struct cli_request rq = { .path = "/admin/snapshots?name=", .id = id };
	AUTO(json_decrefp) json_t *answer = NULL;
	AUTO(json_decrefp) json_t *rows = json_array();
	struct err err = { 0 };
	const json_t *why;
	size_t i;

	if (cli_ask(c, &rq, &answer, &err) < 0)
		return cli_fail(c, &err);
	if (json_array_size(answer) == 0) {
		err_set(&err, ERR_NOT_FOUND, 0, "there is no snapshot %s", id);
		return cli_fail(c, &err);
	}
	if (c->json)
		return cli_print_json(json_array_get(answer, 0));
	json_array_foreach(json_object_get(json_array_get(answer, 0), "why"), i, why)
		json_array_append_new(rows, json_pack("{s:O}", "why", why));
	table_print(stdout, rows, why_columns, COUNT(why_columns));
	return CLI_FINE;
}

int snapshots_run(struct cli *c)
{
	if (c->n_words == 1)
		return say_why(c, c->words[0]);
	return teams_show(c, &(struct cli_request){ .path = "/admin/snapshots" }, snapshot_columns,
			  COUNT(snapshot_columns));
}

/* The id of a copy alone on a line, or why there is none. */
static int say_copy(const struct cli *c, const json_t *one)
{
	const json_t *box = json_object_get(one, "sandbox"), *error = json_object_get(one, "error");
	const char *id = json_string_value(json_object_get(box, "sandboxID"));
	const char *why = json_string_value(json_object_get(error, "message"));
	struct err err;

	if (id && folder_name_ok(id, strlen(id) + 1)) {
		printf("%s\n", id);
		return CLI_FINE;
	}
	err_set(&err, ERR_EXHAUSTED, 0, "a copy failed: %s", why ? why : "no reason is known");
	return cli_fail(c, &err);
}

static int say_copies(const struct cli *c, const json_t *all)
{
	int worst = CLI_FINE;
	const json_t *one;
	size_t i;

	json_array_foreach(all, i, one)
	{
		int status = say_copy(c, one);

		worst = status > worst ? status : worst;
	}
	return worst;
}

int fork_run(struct cli *c)
{
	AUTO(json_decrefp)
	json_t *body = json_pack("{s:I}", "count", (json_int_t)(c->count ? c->count : 1));
	const struct cli_request rq = { "POST", "/admin/sandboxes/", c->words[0], "/fork",
					.body = body };

	return cli_answer(c, &rq, say_copies);
}
