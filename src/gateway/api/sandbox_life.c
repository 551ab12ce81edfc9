/* sandbox_life.c - how long a sandbox lives: timeout, refreshes, pause, resume, connect. */
#include "base/clock.h"
#include "gateway/api/answer.h"
#include "gateway/api/sandbox_ask.h"
#include "gateway/api/sandbox_json.h"
#include "gateway/parse/create_request.h"

enum {
	REFRESH_LEAST_S = 15,
	REFRESH_MOST_S = 3600,
	CONNECT_DEFAULT_S = 300,
	RESUME_DEFAULT_S = 15,
	ADMIN_RESUME_S = 300,
};

/* The member `name` of a body. Answered already when this fails. */
static bool take_seconds(struct api_call *c, const json_t *body, const char *name, bool required,
			 int64_t *ret)
{
	int64_t given = INT64_MIN;
	struct err err;

	if (timeout_take(body, name, &given, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return false;
	}
	if (given == INT64_MIN && required) {
		api_fail(c, 400, "%s is missing", name);
		return false;
	}
	if (given != INT64_MIN)
		*ret = given;
	return true;
}

/* NODE_NO_MEMORY for `"memory": false`. Answered already when this fails. */
static bool take_memory(struct api_call *c, const json_t *body, uint32_t *ret)
{
	bool memory = true;
	struct err err;

	if (json_may_bool(body, "memory", &memory, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return false;
	}
	*ret = memory ? 0 : NODE_NO_MEMORY;
	return true;
}

static void sandbox_timeout(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct node_request rq = { .verb = NODE_TIMEOUT };
	int64_t seconds = 0;

	if (!sandbox_take_id(c) || api_body(c, &body) < 0 ||
	    !take_seconds(c, body, "timeout", true, &seconds))
		return;
	if (seconds < 0) {
		api_fail(c, 400, "Timeout must not be negative");
		return;
	}
	/* capped, not refused: node knows what is allowed */
	rq.timeout_s = (uint32_t)(seconds < NODE_TIMEOUT_MAX_S ? seconds : NODE_TIMEOUT_MAX_S);
	sandbox_ask(c, &rq, API_NODE_MS, sandbox_on_no_content);
}

/* A refresh resumes nothing and shortens nothing, so how things stand comes first. */
static void on_to_refresh(struct api_call *c, struct node_answer *said)
{
	struct node_request rq = { .verb = NODE_TIMEOUT, .timeout_s = c->seconds };

	if (said->reply->sandbox.state != NODE_RUNNING)
		api_fail(c, 409, "Sandbox \"%s\" is not running", c->params[0]);
	else if (said->reply->sandbox.end_ns >= clock_wall_ns() + c->seconds * NSEC_PER_SEC)
		api_answer(c, 204, NULL);
	else
		sandbox_ask(c, &rq, API_NODE_MS, sandbox_on_no_content);
}

static void sandbox_refresh(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	int64_t seconds = REFRESH_LEAST_S;

	if (!sandbox_take_id(c) || api_body(c, &body) < 0 ||
	    !take_seconds(c, body, "duration", false, &seconds))
		return;
	if (seconds < 0 || seconds > REFRESH_MOST_S) {
		api_fail(c, 400, "duration must be between 0 and %d", REFRESH_MOST_S);
		return;
	}
	c->seconds = (uint32_t)(seconds > REFRESH_LEAST_S ? seconds : REFRESH_LEAST_S);
	sandbox_ask(c, &(struct node_request){ .verb = NODE_GET }, API_NODE_MS, on_to_refresh);
}

/* Asked again by a link that came back, it finds what it did itself. */
static void on_not_paused(struct api_call *c, const struct node_answer *said)
{
	if (said->err->code == ERR_EXISTS && c->node.n_sends > 1)
		api_answer(c, 204, NULL);
	else
		sandbox_fail(c, said);
}

static void sandbox_pause(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	struct node_request rq = { .verb = NODE_PAUSE };

	sandbox_limit(c, &rq);
	c->on_refused = on_not_paused;
	if (sandbox_take_id(c) && api_body(c, &body) == 0 && take_memory(c, body, &rq.flags))
		sandbox_ask_or(c, &rq, API_PAUSE_MS, sandbox_on_no_content);
}

static void on_connected(struct api_call *c, struct node_answer *said)
{
	api_answer(c, said->reply->resumed ? 201 : 200,
		   sandbox_json(&said->reply->sandbox, api_domain(c)));
}

static void ask_to_run(struct api_call *c, enum node_verb verb, int64_t seconds, uint32_t flags)
{
	struct node_request rq = { .verb = verb, .flags = flags };
	struct err err;

	sandbox_limit(c, &rq);
	if (timeout_check(seconds, 0, &rq.timeout_s, &err) < 0)
		api_fail_err(c, &err);
	else
		sandbox_ask(c, &rq, API_CREATE_MS, on_connected);
}

static void sandbox_connect(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	int64_t seconds = CONNECT_DEFAULT_S;
	uint32_t flags = 0;

	if (sandbox_take_id(c) && api_body(c, &body) == 0 && take_memory(c, body, &flags) &&
	    take_seconds(c, body, "timeout", !c->route->v2, &seconds))
		ask_to_run(c, NODE_CONNECT, seconds, flags);
}

static void sandbox_resume(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL;
	int64_t seconds = api_is_admin(c) ? ADMIN_RESUME_S : RESUME_DEFAULT_S;
	bool pauses = false; /* also as it was made to */
	uint32_t flags = 0;
	struct err err;

	if (!sandbox_take_id(c) || api_body(c, &body) < 0 || !take_memory(c, body, &flags) ||
	    !take_seconds(c, body, "timeout", false, &seconds))
		return;
	if (json_may_bool(body, "autoPause", &pauses, &err) < 0)
		api_fail(c, 400, "%s", err.msg);
	else
		ask_to_run(c, NODE_RESUME, seconds, flags | (pauses ? NODE_AUTO_PAUSE : 0u));
}

const struct route sandbox_life_routes[] = {
	{ "POST", "/sandboxes/{sandboxID}/timeout", AUTH_KEY, sandbox_timeout, true },
	{ "POST", "/sandboxes/{sandboxID}/refreshes", AUTH_KEY, sandbox_refresh, true },
	{ "POST", "/sandboxes/{sandboxID}/connect", AUTH_KEY, sandbox_connect, true },
	{ "POST", "/v2/sandboxes/{sandboxID}/connect", AUTH_KEY, sandbox_connect, true,
	  .v2 = true },
	{ "POST", "/sandboxes/{sandboxID}/pause", AUTH_KEY, sandbox_pause, true },
	{ "POST", "/sandboxes/{sandboxID}/resume", AUTH_KEY, sandbox_resume, true },
	{ "POST", "/admin/sandboxes/{sandboxID}/pause", AUTH_ADMIN, sandbox_pause, true },
	{ "POST", "/admin/sandboxes/{sandboxID}/resume", AUTH_ADMIN, sandbox_resume, true },
	{ 0 },
};
