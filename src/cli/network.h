/* network.h - the commands about the network of a sandbox. */
#pragma once

#include "cli/cli.h"

int explain_run(struct cli *c);
int egress_run(struct cli *c);
