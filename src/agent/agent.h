/* agent.h - the server inside the guest, and what its routes share. */
#pragma once

#include "agent/machine/cgroup.h"
#include "agent/machine/command_groups.h"
#include "agent/doors.h"
#include "agent/machine/identity.h"
#include "agent/machine/metrics.h"
#include "agent/options.h"
#include "agent/process/processes.h"
#include "agent/tunnel.h"
#include "http/server.h"
#include "net/signals.h"

struct watcher;
struct watchers { /* see watchers.h */
	struct watcher *first;
	size_t n;
};

struct agent {
	struct loop *loop;
	struct doors doors;
	struct http_server http;
	struct processes processes;
	struct cgroup cgroup;
	struct command_groups groups;
	struct tunnels tunnels;
	struct watchers watchers;
	struct cpu_times cpu; /* when /metrics was last asked for */
	struct session session;
	struct identity_place place;
	int staging; /* folder for uploads that are not whole yet; -1: none */
	struct signal_watch term, interrupt;
	const struct agent_options *options;
};

/* The whole program: main() with the effects it may have. Returns an exit status. */
int agent_main(int argc, char **argv, const struct identity_effects *effects);

/* The user named by a client; empty: the default one. */
int agent_account(const struct agent *a, struct bytes name, struct account *ret,
		  struct err *err) NODISCARD;
