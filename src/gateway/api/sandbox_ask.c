/* sandbox_ask.c - requests about the sandbox that a path names, and how they fail. */
#include "gateway/api/sandbox_ask.h"

#include "gateway/api/answer.h"
#include "gateway/api/sandbox_json.h"

static bool id_ok(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789");

	return n > 0 && n <= NODE_ID_MAX && id[n] == '\0';
}

bool sandbox_take_id(struct api_call *c)
{
	char *dash = strchr(c->params[0], '-');
	bool ok = !dash || !strchr(dash + 1, '-');

	if (dash)
		*dash = '\0';
	if (!ok || !id_ok(c->params[0])) {
		api_fail(c, 400, "Invalid sandbox ID");
		return false;
	}
	return true;
}

/* The admin door has no team of its own, which node takes for any. */
void sandbox_ask_or(struct api_call *c, const struct node_request *rq, uint64_t deadline_ms,
		    api_node_fn *on_done)
{
	struct node_request whole = *rq;

	snprintf(whole.team, sizeof(whole.team), "%s", c->team.id);
	memcpy(whole.id, c->params[0], sizeof(whole.id));
	api_ask_node_or(c, &whole, (struct bytes){ 0 }, deadline_ms, on_done);
}

void sandbox_ask(struct api_call *c, const struct node_request *rq, uint64_t deadline_ms,
		 api_node_fn *on_done)
{
	c->on_refused = sandbox_fail;
	sandbox_ask_or(c, rq, deadline_ms, on_done);
}

static struct node_limits limits_of(const struct store_limits *l)
{
	return (struct node_limits){ .sandboxes = l->sandboxes,
				     .vcpus = l->vcpus,
				     .memory_mib = l->memory_mib,
				     .disk_mib = l->disk_mib,
				     .paused = l->paused };
}

/* To node a family of keys is one key: it is counted as one, and has one turn in the queue. */
const char *api_domain(struct api_call *c)
{
	struct bytes host = { 0 };

	if (c->rq && http1_find(http_request_head(c->rq), "host", &host) != 1)
		host.len = 0;
	sandbox_domain(c->g->domain, host, c->domain);
	return c->domain;
}

void sandbox_limit(const struct api_call *c, struct node_request *rq)
{
	snprintf(rq->key_id, sizeof(rq->key_id), "%s", c->family);
	rq->limits = limits_of(&c->limits);
	rq->team_limits = limits_of(&c->team.limits);
}

void sandbox_fail(struct api_call *c, const struct node_answer *said)
{
	const struct node_reply *reply = said->reply;
	char message[128 + NODE_ID_MAX];
	json_t *body;

	if (said->err->code != ERR_NOT_FOUND) {
		api_fail_reply(c, said);
		return;
	}
	snprintf(message, sizeof(message),
		 "Sandbox \"%.*s\" doesn't exist or you don't have access to it", NODE_ID_MAX,
		 c->params[0]);
	body = json_pack("{s:i, s:s}", "code", 404, "message", message);
	if (reply && sandbox_add_end(body, reply->sandbox.reason, reply->sandbox.ended_ns) < 0) {
		json_decref(body);
		body = NULL;
	}
	api_answer(c, 404, body);
}

void sandbox_on_no_content(struct api_call *c, struct node_answer *said)
{
	(void)said;
	api_answer(c, 204, NULL);
}
