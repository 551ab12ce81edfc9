/* route.c - which of the tables has the route of a request, and who may take it. */
#include "agent/route.h"

#include "agent/access.h"
#include "agent/agent.h"
#include "agent/filesystem/fs_call.h"
#include "agent/process/process_request.h"
#include "agent/reply.h"
#include "wire/target.h"

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

static const struct route health_routes[] = {
	{ "/health", "GET", GUARD_NONE, route_health },
	{ 0 },
};

/* In any order: no two routes have the same path and method. */
static const struct route *const tables[] = {
	health_routes,      tunnel_routes,        control_routes,      files_read_routes,
	files_write_routes, files_compose_routes, filesystem_routes,   watch_routes,
	watchers_routes,    metrics_routes,       start_routes,        connect_routes,
	process_routes,     input_routes,         stream_input_routes, signal_routes
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
static const struct route *find(const struct http1_head *h, struct bytes path, bool *ret_known)
{
	*ret_known = false;
	for (size_t i = 0; i < COUNT(tables); i++)
		for (const struct route *r = tables[i]; r->path; r++) {
			if (!bytes_eq(path, bytes_str(r->path)))
				continue;
			if (bytes_eq(h->method, bytes_str(r->method)))
				return r;
			*ret_known = true;
		}
	return NULL;
}

static void serve(const struct route *r, struct agent *a, struct http_request *rq)
{
	if (r->quick)
		rpc_quick(a, rq, PROCESS_JSON_DEPTH, r->quick);
	else if (r->feed)
		rpc_feed_open(a, rq, r->feed);
	else if (r->fs)
		fs_call_run(a, rq, r->fs);
	else
		r->run(a, rq);
}

void route(struct http_server *sv, struct http_request *rq)
{
	struct agent *a = CONTAINER_OF(sv, struct agent, http);
	const struct http1_head *h = http_request_head(rq);
	const struct route *found;
	struct target t;
	struct err err;
	bool known;

	if (target_split(h->target, &t, &err) < 0) {
		reply_fail(rq, 400, "%s", err.msg);
		return;
	}
	found = find(h, t.path, &known);
	if (found && may_pass(a, found->guard, h))
		serve(found, a, rq);
	else
		refuse(a, rq, t.path, known);
}
