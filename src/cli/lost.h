/* lost.h - the command about what is on the disk and in no row. */
#pragma once

#include "cli/cli.h"

int lost_run(struct cli *c);
