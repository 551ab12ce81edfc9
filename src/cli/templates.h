/* templates.h - the command about templates. */
#pragma once

#include "cli/cli.h"

int templates_run(struct cli *c);
