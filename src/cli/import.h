/* import.h - `templates import`: a template out of an image in a file. */
#pragma once

#include "cli/cli.h"

int import_run(struct cli *c);
