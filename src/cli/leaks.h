/* leaks.h - what one look at the host saw; leaks.c and leaks_files.c share it. */
#pragma once

#include "cli/cli.h"

enum { LEAKS_PATH_MAX = 4096 };

struct sight {             /* one look; sets of ids are JSON objects */
	json_t *listed;    /* by node: those that run, and the pool's */
	json_t *paused;    /* by node */
	json_t *snapshots; /* by node, hidden ones included */
	json_t *set_aside; /* by node: rows it makes no sense of */
	json_t *folders;   /* below state_dir/vms */
	json_t *groups;    /* control groups, in any hierarchy */
	json_t *members;   /* id -> pid of a process in its group */
	json_t *leaks;     /* what is wrong */
	bool node_knows;   /* is there a list? */
};

void sight_wrong(struct sight *s, const char *kind, const char *what, const char *why);

/* leaks_files.c: what is in node's data_dir and in no row. After node was asked. */
void leaks_look_files(const struct cli *c, struct sight *s);
