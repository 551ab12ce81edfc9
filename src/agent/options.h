/* options.h - the command line of the agent. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum { AGENT_PORT = 49983 }; /* where every client of the E2B API expects it */

struct agent_options {
	bool init; /* be pid 1 of the guest */
	bool help;
	uint16_t port;      /* 0: any; it is printed */
	const char *listen; /* address; NULL: all there are */
	const char *cgroup; /* of user processes; NULL: none */
	const char *root;   /* in front of /etc and /run: "" but in tests */
	const char *user;   /* whoever a client does not name one */
};

/* Borrows from argv. */
int options_parse(int argc, char **argv, bool is_pid1, struct agent_options *ret,
		  struct err *err) NODISCARD;
extern const char options_help[];
