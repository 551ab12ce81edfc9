/* templates.h - the command about templates. */
#pragma once

#include "cli/cli.h"
#include "wire/json.h"

int templates_run(struct cli *c);

/* Lines of a build's log from `from` on are added to `all`. *ret is the build as it is now. */
int build_page(const struct cli *c, const char *build, size_t from, json_t *all, json_t **ret,
	       struct err *err) NODISCARD;
