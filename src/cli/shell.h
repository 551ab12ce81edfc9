/* shell.h - commands and terminals in a sandbox. */
#pragma once

#include "cli/cli.h"

int command_run(struct cli *c); /* exec SANDBOX -- COMMAND... */
int shell_run(struct cli *c);
