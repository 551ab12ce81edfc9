/* cli.h - what every command of `hotcell` shares: its options, how it asks, how it answers. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "wire/json.h"

enum {
	ANSWER_MAX = 16 * 1024 * 1024, /* bytes of one answer of the gateway */
	ANSWER_DEPTH = 16,
	ASK_CONNECT_MS = 5 * 1000,
	ASK_MS = 360 * 1000, /* a pause is answered when all is on the disk */
	TARGET_MAX = 512,
	PAGES_MAX = 1000,
};

enum cli_exit { /* the program's exit status */
		CLI_FINE,
		CLI_FAILED,      /* asked, and refused; a check failed; something is left */
		CLI_USAGE,       /* what was typed makes no sense */
		CLI_UNREACHABLE, /* no answer: nothing is known */
};

enum cli_limit { LIMIT_SANDBOXES, LIMIT_VCPUS, LIMIT_MEMORY, LIMIT_DISK, LIMIT_PAUSED, CLI_LIMITS };

struct cli {
	const char *socket; /* of the gateway's admin door */
	bool json;
	bool all;                       /* of ps: paused ones too */
	bool none;                      /* of keys services: no service */
	bool boot;                      /* of resume: from the disk alone */
	uint64_t count;                 /* of fork; 0: not given */
	const char *limits[CLI_LIMITS]; /* of keys and teams limits; NULL: as it is */
	/* what doctor looks at */
	bool leaks;
	const char *state_dir, *data_dir, *cgroup, *qemu;
	uint64_t uid_base, uids;
};

struct command {
	const char *name, *usage, *help;
	int (*run)(struct cli *c, int argc, char **argv); /* argv[0] is the command's name */
};

int teams_run(struct cli *c, int argc, char **argv);
int keys_run(struct cli *c, int argc, char **argv);
int ps_run(struct cli *c, int argc, char **argv);
int kill_run(struct cli *c, int argc, char **argv);
int pause_run(struct cli *c, int argc, char **argv);
int resume_run(struct cli *c, int argc, char **argv);
int ended_run(struct cli *c, int argc, char **argv);
int why_run(struct cli *c, int argc, char **argv);
int explain_run(struct cli *c, int argc, char **argv);
int egress_run(struct cli *c, int argc, char **argv);
int snapshots_run(struct cli *c, int argc, char **argv);
int lost_run(struct cli *c, int argc, char **argv);
int fork_run(struct cli *c, int argc, char **argv);
int templates_run(struct cli *c, int argc, char **argv);
int status_run(struct cli *c, int argc, char **argv);
int confirm_lost_run(struct cli *c, int argc, char **argv);
int doctor_run(struct cli *c, int argc, char **argv);
int leaks_run(struct cli *c);

/* One request to the gateway, and its answer: *ret is NULL when it has no body. An answer that is
 * an error comes as that error. */
int cli_ask(const struct cli *c, const char *method, const char *target, const json_t *body,
	    json_t **ret, struct err *err) NODISCARD;

/* The same for a list that comes in pages: all of it. `path` may have a query. */
int cli_list(const struct cli *c, const char *path, json_t **ret, struct err *err) NODISCARD;

/* PREFIX, an id as typed, SUFFIX, a value: both are encoded. */
int cli_target(char ret[static TARGET_MAX], const char *prefix, const char *id, const char *suffix,
	       const char *value, struct err *err) NODISCARD;

/* For a command that takes ids: each is tried, whatever became of the one before. With --json it
 * prints {"VERB": [ids]} in the end. */
int cli_each(struct cli *c, int n, char **ids, const char *verb,
	     int (*one)(const struct cli *c, const char *id));

int cli_fail(const struct cli *c, const struct err *err); /* says it; the exit status for it */
int cli_usage(const struct cli *c, const char *usage);
int cli_print_json(const json_t *v); /* an exit status, for nothing can be said if it fails */
