/* sandboxes.h - the commands about sandboxes. */
#pragma once

#include "cli/cli.h"
#include "wire/json.h"

/* What tables show of them: names of teams and templates, ends that come. */
void sandboxes_for_people(const struct cli *c, json_t *rows);

int ps_run(struct cli *c);
int kill_run(struct cli *c);
int pause_run(struct cli *c);
int resume_run(struct cli *c);
int ended_run(struct cli *c);
int why_run(struct cli *c);
