/* sandbox_routes.c - create, get, kill, timeout, connect. */
#include "gateway/create_request.h"
#include "gateway/handlers.h"
#include "gateway/sandbox_json.h"

enum { REFRESH_LEAST_S = 15, REFRESH_MOST_S = 3600, CONNECT_DEFAULT_S = 300 };

void api_ask_node(struct api_call *c, const struct node_request *rq, struct bytes text,
		  uint64_t deadline_ms,
		  void (*on_done)(struct node_call *call, const struct node_reply *reply,
				  struct bytes after, int *fds, size_t n_fds,
				  const struct err *err))
{
	struct err err;

	if (node_link_call(c->g->node, &c->node, rq, text, deadline_ms, on_done, &err) < 0)
		api_fail_err(c, &err);
}

void health_get(struct api_call *c)
{
	api_answer(c, 204, NULL);
}

void not_built(struct api_call *c)
{
	api_fail(c, 501, "%s %s is not there yet", c->route->method, c->route->path);
}

static void on_created(struct node_call *call, const struct node_reply *reply, struct bytes after,
		       int *fds, size_t n_fds, const struct err *err)
{
	struct api_call *c = CONTAINER_OF(call, struct api_call, node);

	(void)after;
	(void)fds;
	(void)n_fds;
	if (err && err->code == ERR_NOT_FOUND)
		api_fail(c, 404, "template '%s' not found", c->params[0]);
	else if (err)
		api_fail_err(c, err);
	else
		api_answer(c, 201, sandbox_json(&reply->sandbox, c->g->domain));
}

static void create(struct api_call *c, enum api_version version)
{
	struct node_request rq = { .verb = NODE_CREATE };
	struct create_request want;
	struct err err;

	if (create_request_parse(buf_view(&c->body), version, &want, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	memcpy(rq.template_id, want.template_id, sizeof(rq.template_id));
	memcpy(c->params[0], want.template_id, sizeof(want.template_id));
	rq.timeout_s = want.timeout_s;
	rq.flags = want.secure ? NODE_SECURE : 0;
	api_ask_node(c, &rq, buf_view(&want.text), API_CREATE_MS, on_created);
	create_request_done(&want);
}

void sandbox_create_v1(struct api_call *c)
{
	create(c, API_V1);
}

void sandbox_create_v2(struct api_call *c)
{
	create(c, API_V2);
}

/* `<id>` or `<id>-<clientID>`, the latter dropped. Answered already when this fails. */
static bool take_id(struct api_call *c)
{
	char *dash = strchr(c->params[0], '-');
	bool ok = !dash || !strchr(dash + 1, '-');
	size_t n = strspn(c->params[0], "abcdefghijklmnopqrstuvwxyz0123456789");

	if (dash)
		*dash = '\0';
	if (!ok || n == 0 || n > NODE_ID_MAX || c->params[0][n] != '\0') {
		api_fail(c, 400, "Invalid sandbox ID");
		return false;
	}
	return true;
}

/* The admin door has no team of its own, which node takes for any. */
static void ask_about(struct api_call *c, enum node_verb verb, uint32_t timeout_s,
		      void (*on_done)(struct node_call *call, const struct node_reply *reply,
				      struct bytes after, int *fds, size_t n_fds,
				      const struct err *err))
{
	struct node_request rq = { .verb = verb, .timeout_s = timeout_s };

	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	memcpy(rq.id, c->params[0], sizeof(rq.id));
	api_ask_node(c, &rq, (struct bytes){ 0 }, API_NODE_MS, on_done);
}

static void fail_about(struct api_call *c, const struct err *err)
{
	if (err->code == ERR_NOT_FOUND)
		api_fail(c, 404, "Sandbox \"%s\" doesn't exist or you don't have access to it",
			 c->params[0]);
	else
		api_fail_err(c, err);
}

static void on_got(struct node_call *call, const struct node_reply *reply, struct bytes after,
		   int *fds, size_t n_fds, const struct err *err)
{
	struct api_call *c = CONTAINER_OF(call, struct api_call, node);
	AUTO(json_decrefp) json_t *text = NULL;

	(void)fds;
	(void)n_fds;
	if (err) {
		fail_about(c, err);
		return;
	}
	text = sandbox_text(after);
	api_answer(c, 200, sandbox_detail_json(&reply->sandbox, text, c->g->domain));
}

void sandbox_get(struct api_call *c)
{
	if (take_id(c))
		ask_about(c, NODE_GET, 0, on_got);
}

static void on_not_built(struct node_call *call, const struct node_reply *reply, struct bytes after,
			 int *fds, size_t n_fds, const struct err *err)
{
	struct api_call *c = CONTAINER_OF(call, struct api_call, node);

	(void)reply;
	(void)after;
	(void)fds;
	(void)n_fds;
	if (err)
		fail_about(c, err);
	else
		not_built(c);
}

void not_built_sandbox(struct api_call *c)
{
	if (take_id(c))
		ask_about(c, NODE_GET, 0, on_not_built);
}

static void on_no_content(struct node_call *call, const struct node_reply *reply,
			  struct bytes after, int *fds, size_t n_fds, const struct err *err)
{
	struct api_call *c = CONTAINER_OF(call, struct api_call, node);

	(void)reply;
	(void)after;
	(void)fds;
	(void)n_fds;
	if (err)
		fail_about(c, err);
	else
		api_answer(c, 204, NULL);
}

void sandbox_kill(struct api_call *c)
{
	if (take_id(c))
		ask_about(c, NODE_KILL, 0, on_no_content);
}

void admin_sandbox_kill(struct api_call *c)
{
	sandbox_kill(c);
}

/* The member `name` of the body. Answered already when this fails. */
static bool take_seconds(struct api_call *c, const char *name, bool required, int64_t *ret)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct err err;
	int rc;

	if (api_body(c, &body) < 0)
		return false;
	if (required)
		rc = json_want_int(body, name, INT64_MIN, INT64_MAX, ret, &err);
	else
		rc = json_may_int(body, name, INT64_MIN, INT64_MAX, ret, &err);
	if (rc < 0)
		api_fail(c, 400, "%s", err.msg);
	return rc == 0;
}

void sandbox_timeout(struct api_call *c)
{
	int64_t seconds = 0;

	if (!take_id(c) || !take_seconds(c, "timeout", true, &seconds))
		return;
	if (seconds < 0) {
		api_fail(c, 400, "Timeout must not be negative");
		return;
	}
	if (seconds > NODE_TIMEOUT_MAX_S)
		seconds = NODE_TIMEOUT_MAX_S;
	ask_about(c, NODE_TIMEOUT, (uint32_t)seconds, on_no_content);
}

void sandbox_refresh(struct api_call *c)
{
	int64_t seconds = REFRESH_LEAST_S;

	if (!take_id(c) || !take_seconds(c, "duration", false, &seconds))
		return;
	if (seconds < 0 || seconds > REFRESH_MOST_S) {
		api_fail(c, 400, "duration must be between 0 and %d", REFRESH_MOST_S);
		return;
	}
	if (seconds < REFRESH_LEAST_S)
		seconds = REFRESH_LEAST_S;
	ask_about(c, NODE_CONNECT, (uint32_t)seconds, on_no_content); /* never shortens */
}

static void on_connected(struct node_call *call, const struct node_reply *reply, struct bytes after,
			 int *fds, size_t n_fds, const struct err *err)
{
	struct api_call *c = CONTAINER_OF(call, struct api_call, node);

	(void)after;
	(void)fds;
	(void)n_fds;
	if (err)
		fail_about(c, err);
	else
		api_answer(c, 200, sandbox_json(&reply->sandbox, c->g->domain));
}

/* Booting from the disk alone is not there yet; restoring silently would be a lie. */
static bool memory_ok(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	bool memory = true;
	struct err err;

	if (api_body(c, &body) < 0)
		return false;
	if (json_may_bool(body, "memory", &memory, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return false;
	}
	if (!memory)
		api_answer(c, 400,
			   json_pack("{s:i, s:s, s:s}", "code", 400, "message",
				     "memory = false is not supported yet", "error_code",
				     "sandbox_memory_override_disabled"));
	return memory;
}

static void connect_to(struct api_call *c, enum api_version version)
{
	int64_t seconds = CONNECT_DEFAULT_S;
	uint32_t timeout_s;
	struct err err;

	if (!take_id(c) || !memory_ok(c) ||
	    !take_seconds(c, "timeout", version == API_V1, &seconds))
		return;
	if (timeout_check(seconds, 0, &timeout_s, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	ask_about(c, NODE_CONNECT, timeout_s, on_connected);
}

void sandbox_connect_v1(struct api_call *c)
{
	connect_to(c, API_V1);
}

void sandbox_connect_v2(struct api_call *c)
{
	connect_to(c, API_V2);
}
