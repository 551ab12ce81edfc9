/* teams.c - see teams.h. */
#include "cli/teams.h"

#include "cli/say.h"
#include "cli/table.h"

/* {id: name}; empty when they cannot be asked for. */
static json_t *ask_names(const struct cli *c)
{
	AUTO(json_decrefp) json_t *teams = NULL;
	json_t *names = json_object(), *team;
	struct err ignored;
	size_t i;

	if (cli_list(c, &(struct cli_request){ .path = "/admin/teams" }, &teams, &ignored) < 0)
		return names;
	json_array_foreach(teams, i, team)
	{
		const char *id = json_string_value(json_object_get(team, "teamID"));
		json_t *name = json_object_get(team, "name");

		if (id && json_is_string(name))
			json_object_set(names, id, name);
	}
	return names;
}

void teams_name(const struct cli *c, json_t *rows)
{
	AUTO(json_decrefp) json_t *names = NULL;
	json_t *row;
	size_t i;

	if (json_array_size(rows) > 0)
		names = ask_names(c);
	json_array_foreach(rows, i, row)
	{
		json_t *id = json_object_get(row, "teamID");
		json_t *name =
			json_is_string(id) ? json_object_get(names, json_string_value(id)) : NULL;

		if (id)
			json_object_set(row, "team", name ? name : id);
	}
}

int teams_show(const struct cli *c, const struct cli_request *rq, const struct column *columns,
	       size_t n)
{
	AUTO(json_decrefp) json_t *rows = NULL;
	struct err err = { 0 };

	if (cli_list(c, rq, &rows, &err) < 0)
		return cli_fail(c, &err);
	if (!c->json)
		teams_name(c, rows);
	return cli_show_rows(c, rows, columns, n);
}
