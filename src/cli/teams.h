/* teams.h - teams are shown by their names. */
#pragma once

#include "cli/ask.h"

/* Each row gets a member "team": the name that the team of its member "teamID" has, or that id when
 * nobody knows one. One request, and none when there are no rows. */
void teams_name(const struct cli *c, json_t *rows);
/* Asks for a list and shows it, with that member; --json: as it came. The exit status. */
struct column;
int teams_show(const struct cli *c, const struct cli_request *rq, const struct column *columns,
	       size_t n);
