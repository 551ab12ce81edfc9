/* templates_say.h - templates and builds as people read them, in 100 columns. */
#pragma once

#include "cli/cli.h"
#include "wire/json.h"

/* Members are added to what is given. */
void templates_say_all(json_t *all);
/* A row of /admin/templates, or what /admin/templates/ID says. */
void templates_say_one(json_t *t);
/* TEAM/NAME of a team's; of the host's its alias, or its id. Into `ret`. */
enum { TEMPLATE_NAME_SIZE = 160 };
void templates_name(const json_t *t, char ret[static TEMPLATE_NAME_SIZE]);
const char *templates_text(const json_t *o, const char *name); /* "": there is none */
