/* route.c - which request goes where: one table. */
#include "agent/access.h"
#include "agent/agent.h"
#include "agent/reply.h"
#include "wire/target.h"

enum guard {
	GUARD_NONE,
	GUARD_CLIENT,  /* the client's token: else 401 */
	GUARD_FILES,   /* the client's token or a signed URL: the route itself looks */
	GUARD_CONTROL, /* the host's token: else 404, as for anything unknown below /control/ */
};

static void route_health(struct agent *a, struct http_request *rq)
{
	static const struct http1_field field = {
		BYTES_LIT("cache-control"),
		BYTES_LIT("no-store"),
	};

	(void)a;
	http_answer(rq, &(struct http_response){ .status = 204, .fields = &field, .n_fields = 1 },
		    (struct bytes){ 0 });
}

struct row {
	const char *path, *method;
	enum guard guard;
	void (*run)(struct agent *a, struct http_request *rq);
};

static const struct row routes[] = {
	{ "/health", "GET", GUARD_NONE, route_health },
	{ "/tunnel", "GET", GUARD_NONE, route_tunnel },
	{ "/control/clock", "GET", GUARD_NONE, route_clock },
	{ "/control/identity", "POST", GUARD_CONTROL, route_identity },
	{ "/control/freeze", "POST", GUARD_CONTROL, route_freeze },
	{ "/envs", "GET", GUARD_CLIENT, route_envs },
	{ "/files", "GET", GUARD_FILES, route_files_read },
	{ "/files", "HEAD", GUARD_FILES, route_files_read },
	{ "/files", "POST", GUARD_FILES, route_files_write },
	{ "/files/compose", "POST", GUARD_CLIENT, route_files_compose },
	{ "/filesystem.Filesystem/Stat", "POST", GUARD_CLIENT, route_stat },
	{ "/filesystem.Filesystem/MakeDir", "POST", GUARD_CLIENT, route_make_dir },
	{ "/filesystem.Filesystem/Move", "POST", GUARD_CLIENT, route_move },
	{ "/filesystem.Filesystem/ListDir", "POST", GUARD_CLIENT, route_list_dir },
	{ "/filesystem.Filesystem/Remove", "POST", GUARD_CLIENT, route_remove },
	{ "/filesystem.Filesystem/WatchDir", "POST", GUARD_CLIENT, route_watch_dir },
	{ "/filesystem.Filesystem/CreateWatcher", "POST", GUARD_CLIENT, route_create_watcher },
	{ "/filesystem.Filesystem/GetWatcherEvents", "POST", GUARD_CLIENT,
	  route_get_watcher_events },
	{ "/filesystem.Filesystem/RemoveWatcher", "POST", GUARD_CLIENT, route_remove_watcher },
	{ "/metrics", "GET", GUARD_CLIENT, route_metrics },
	{ "/process.Process/Start", "POST", GUARD_CLIENT, route_start },
	{ "/process.Process/Connect", "POST", GUARD_CLIENT, route_connect },
	{ "/process.Process/List", "POST", GUARD_CLIENT, route_list },
	{ "/process.Process/SendInput", "POST", GUARD_CLIENT, route_send_input },
	{ "/process.Process/StreamInput", "POST", GUARD_CLIENT, route_stream_input },
	{ "/process.Process/CloseStdin", "POST", GUARD_CLIENT, route_close_stdin },
	{ "/process.Process/SendSignal", "POST", GUARD_CLIENT, route_send_signal },
	{ "/process.Process/Update", "POST", GUARD_CLIENT, route_update },
};

static bool may_pass(const struct agent *a, enum guard guard, const struct http1_head *h)
{
	switch (guard) {
	case GUARD_NONE:
	case GUARD_FILES:
		return true;
	case GUARD_CLIENT:
		return access_client(&a->session, h);
	case GUARD_CONTROL:
		return access_control(&a->session, h);
	}
	abort();
}

/* Services whose methods are not all there yet. */
static bool is_rpc(struct bytes path)
{
	return bytes_starts(path, BYTES_LIT("/process.Process/")) ||
	       bytes_starts(path, BYTES_LIT("/filesystem.Filesystem/"));
}

/* What is not in the table gives nothing away to whoever has no token. */
static void refuse(const struct agent *a, struct http_request *rq, struct bytes path, bool known)
{
	if (bytes_starts(path, BYTES_LIT("/control/")))
		reply_fail(rq, 404, "not found");
	else if (!access_client(&a->session, http_request_head(rq)))
		reply_fail(rq, 401, "%s", ACCESS_DENIED);
	else if (known)
		reply_fail(rq, 405, "method not allowed");
	else if (is_rpc(path))
		reply_rpc_fail(rq, CONNECT_UNIMPLEMENTED, "not implemented");
	else
		reply_fail(rq, 404, "not found");
}

/* NULL: none. *ret_known: one of the same path, for another method. */
static const struct row *find(const struct http1_head *h, struct bytes path, bool *ret_known)
{
	*ret_known = false;
	for (size_t i = 0; i < COUNT(routes); i++) {
		if (!bytes_eq(path, bytes_str(routes[i].path)))
			continue;
		if (bytes_eq(h->method, bytes_str(routes[i].method)))
			return &routes[i];
		*ret_known = true;
	}
	return NULL;
}

void route(struct http_server *sv, struct http_request *rq)
{
	struct agent *a = CONTAINER_OF(sv, struct agent, http);
	const struct http1_head *h = http_request_head(rq);
	const struct row *row;
	struct target t;
	struct err err;
	bool known;

	if (target_split(h->target, &t, &err) < 0) {
		reply_fail(rq, 400, "%s", err.msg);
		return;
	}
	row = find(h, t.path, &known);
	if (row && may_pass(a, row->guard, h))
		row->run(a, rq);
	else
		refuse(a, rq, t.path, known);
}
