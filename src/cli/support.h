/* support.h - `hotcell support`: one text about this server, for whoever helps. */
#pragma once

#include "cli/cli.h"

int support_run(struct cli *c);
