/* say.h - how commands answer: a failure, a usage, JSON, what became of each of many. */
#pragma once

#include "cli/ask.h"
#include "cli/cli.h"

int cli_fail(const struct cli *c, const struct err *err); /* says it; the exit status for it */
int cli_fail_fix(const struct cli *c, const struct err *err, const char *fix); /* with this fix */
int cli_usage(const struct cli *c); /* of what was typed: how it is written */
/* Was this the first word, with so many behind it? */
bool cli_says(const struct cli *c, const char *word, int min, int max);
/* Is all on its way? Nothing is said of a reader that went (`| head`): CLI_CLOSED. Else `status`.
 */
int cli_written(int status);
int cli_print_json(const json_t *v); /* an exit status, for nothing can be said if it fails */

/* Asks; a failure is said at once. The exit status. */
int cli_try(const struct cli *c, const struct cli_request *rq, json_t **ret) NODISCARD;

/* Asks, and says what the answer is: as JSON, or in words by `say`. The exit status. */
typedef int say_fn(const struct cli *c, const json_t *answer);
int cli_answer(const struct cli *c, const struct cli_request *rq, say_fn *say);

/* For a command that takes ids: `rq` is asked of each that was typed behind the first `skip` words,
 * whatever became of the one before. With --json it prints {"VERB": [ids]} in the end. */
int cli_each(const struct cli *c, int skip, const char *verb, struct cli_request rq);
