/* sandboxes.h - the commands about sandboxes. */
#pragma once

#include "cli/cli.h"

int ps_run(struct cli *c);
int kill_run(struct cli *c);
int pause_run(struct cli *c);
int resume_run(struct cli *c);
int ended_run(struct cli *c);
int why_run(struct cli *c);
