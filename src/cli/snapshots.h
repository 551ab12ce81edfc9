/* snapshots.h - the commands about copies of sandboxes. */
#pragma once

#include "cli/cli.h"

int snapshots_run(struct cli *c);
int fork_run(struct cli *c);
