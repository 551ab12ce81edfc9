/* run.h - code in a sandbox: a file in one of its own, or a line in one that is there. */
#pragma once

struct cli;
int run_run(struct cli *c);
int exec_run(struct cli *c);
