/* tls.h - `hotcell tls`: certificates of the gateway. It works on files; no daemon is asked. */
#pragma once

#include "cli/cli.h"

int tls_run(struct cli *c);
