/* leaks.h - does what is on this host agree with what node says? */
#pragma once

#include "cli/cli.h"

int leaks_run(struct cli *c); /* `hotcell doctor --leaks`: an exit status */
