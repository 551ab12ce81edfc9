/* admin.h - the commands about teams, keys and this host. */
#pragma once

#include "cli/cli.h"

int teams_run(struct cli *c);
int keys_run(struct cli *c);
int status_run(struct cli *c);
int confirm_lost_run(struct cli *c);
