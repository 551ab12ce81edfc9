/* logs.h - `hotcell logs`: what happened to a sandbox. */
#pragma once

struct cli;
int logs_run(struct cli *c);
