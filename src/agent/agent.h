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

/* Serve until SIGTERM or SIGINT. Returns an exit status. */
int agent_serve(const struct agent_options *o, const struct identity_effects *effects);

/* The whole program: main() with the effects it may have. */
int agent_main(int argc, char **argv, const struct identity_effects *effects);

/* The user named by a client; empty: the default one. */
int agent_account(const struct agent *a, struct bytes name, struct account *ret,
		  struct err *err) NODISCARD;

/* The routes. Each answers the request or takes it. */
void route(struct http_server *sv, struct http_request *rq);
void route_start(struct agent *a, struct http_request *rq);
void route_connect(struct agent *a, struct http_request *rq);
void route_list(struct agent *a, struct http_request *rq);
void route_send_input(struct agent *a, struct http_request *rq);
void route_stream_input(struct agent *a, struct http_request *rq);
void route_close_stdin(struct agent *a, struct http_request *rq);
void route_send_signal(struct agent *a, struct http_request *rq);
void route_update(struct agent *a, struct http_request *rq);
void route_files_read(struct agent *a, struct http_request *rq);
void route_files_write(struct agent *a, struct http_request *rq);
void route_tunnel(struct agent *a, struct http_request *rq);
void route_files_compose(struct agent *a, struct http_request *rq);
void route_stat(struct agent *a, struct http_request *rq);
void route_make_dir(struct agent *a, struct http_request *rq);
void route_move(struct agent *a, struct http_request *rq);
void route_list_dir(struct agent *a, struct http_request *rq);
void route_remove(struct agent *a, struct http_request *rq);
void route_watch_dir(struct agent *a, struct http_request *rq);
void route_create_watcher(struct agent *a, struct http_request *rq);
void route_get_watcher_events(struct agent *a, struct http_request *rq);
void route_remove_watcher(struct agent *a, struct http_request *rq);
void route_metrics(struct agent *a, struct http_request *rq);
void route_envs(struct agent *a, struct http_request *rq);
void route_clock(struct agent *a, struct http_request *rq);
void route_identity(struct agent *a, struct http_request *rq);
void route_freeze(struct agent *a, struct http_request *rq);
