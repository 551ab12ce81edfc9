/* route.h - which request goes where.
 *
 * Each file of routes has a table of them, ended by an empty one. So a new route is one function
 * and one line in the same file. A new table is named here and in the list of route.c.
 */
#pragma once

#include "agent/process/rpc_feed.h"
#include "agent/rpc/rpc_unary.h"
#include "http/server.h"

struct fs_method;

enum guard {
	GUARD_NONE,
	GUARD_CLIENT,  /* the client's token: else 401 */
	GUARD_FILES,   /* the client's token or a signed URL: the route itself looks */
	GUARD_CONTROL, /* the host's token: else 404, as for anything unknown below /control/ */
};

struct route {
	const char *path, *method;
	enum guard guard;
	/* One of these answers the request or takes it. */
	void (*run)(struct agent *a, struct http_request *rq);
	rpc_quick_fn *quick;        /* of process.Process */
	rpc_feed_message_fn *feed;  /* the same, with what a process says as the answer */
	const struct fs_method *fs; /* of filesystem.Filesystem */
};

extern const struct route connect_routes[], control_routes[], files_compose_routes[],
	files_read_routes[], files_write_routes[], filesystem_routes[], input_routes[],
	metrics_routes[], process_routes[], signal_routes[], start_routes[], stream_input_routes[],
	tunnel_routes[], watch_routes[], watchers_routes[];

/* For the server of an agent. */
void route(struct http_server *sv, struct http_request *rq);
