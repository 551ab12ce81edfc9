/* run.h - code in a sandbox, from a shell. */
#pragma once

#include "cli/run_session.h"

int run_run(struct cli *c);
int exec_run(struct cli *c);

/* What a person can do about a sandbox that could not be made or found. */
const char *run_fix(const struct run_session *s, const struct err *err);
