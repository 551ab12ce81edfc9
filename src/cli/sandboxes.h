/* sandboxes.h - the commands about sandboxes. */
#pragma once

#include "cli/cli.h"

int ps_run(struct cli *c, int argc, char **argv);
int kill_run(struct cli *c, int argc, char **argv);
int pause_run(struct cli *c, int argc, char **argv);
int resume_run(struct cli *c, int argc, char **argv);
int ended_run(struct cli *c, int argc, char **argv);
int why_run(struct cli *c, int argc, char **argv);
