/* spawn.h - start a program as a user, clean of everything that is the agent's.
 *
 * The new process is born in the user's cgroup, frozen if that is frozen; it runs nothing of the
 * program before it has its own session, default signals, the user's ids and no descriptor but
 * 0, 1 and 2. Whether exec worked is told through a pipe, so that nobody has to wait for it.
 */
#pragma once

#include <sys/types.h>

#include "agent/accounts.h"
#include "agent/strings.h"

enum {
	SPAWN_NOFILE = 65536, /* soft limit of descriptors; the hard one is the machine's */
	SPAWN_UMASK = 022,
};

struct spawn_order {                      /* all borrowed */
	const struct strings *argv, *env; /* argv[0] has a slash, or is looked for in env's PATH */
	const char *cwd;                  /* absolute */
	const struct account *who;
	int cgroup;        /* descriptor of its directory, or -1: stay in the agent's */
	int fd[3];         /* become 0, 1 and 2; they stay the caller's */
	bool has_terminal; /* fd[0] is one, and becomes that of the new session */
};

struct spawned {
	pid_t pid;
	int pidfd; /* owned; readable once the process has ended */
	int news;  /* owned; readable once exec has worked or failed */
};

int spawn(const struct spawn_order *o, struct spawned *ret, struct err *err) NODISCARD;

enum spawn_news { SPAWN_PENDING, SPAWN_RUNS, SPAWN_FAILED };

/* What there is to read on `news`. FAILED: *err says why, without the name of the program. */
enum spawn_news spawn_read_news(int news, struct err *err);
