/* usage.h - what sandboxes use of the host: `ps --usage` and `top`. */
#pragma once

#include "cli/cli.h"

int usage_run(struct cli *c); /* ps --usage */
int top_run(struct cli *c);
