/* say.h - how commands answer: a failure, a usage, JSON, what became of each of many. */
#pragma once

#include "cli/cli.h"
#include "wire/json.h"

int cli_fail(const struct cli *c, const struct err *err); /* says it; the exit status for it */
int cli_usage(const struct cli *c, const char *usage);
int cli_print_json(const json_t *v); /* an exit status, for nothing can be said if it fails */

/* For a command that takes ids: each is tried, whatever became of the one before. With --json it
 * prints {"VERB": [ids]} in the end. */
int cli_each(struct cli *c, int n, char **ids, const char *verb,
	     int (*one)(const struct cli *c, const char *id));
