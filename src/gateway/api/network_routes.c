/* network_routes.c - the network of a sandbox: another one; what it allows; what it did. */
#include "gateway/api/answer.h"
#include "gateway/api/sandbox_ask.h"
#include "gateway/api/secret_fill.h"
#include "gateway/parse/key_services.h"
#include "gateway/parse/network_request.h"

enum { QUESTION_MAX = 260 }; /* a name, a colon and a port */

/* About the sandbox in the path, with something to say. */
static void ask_with(struct api_call *c, enum node_verb verb, const json_t *text,
		     api_node_fn *on_done)
{
	AUTO(buf_done) struct buf out = BUF_MAX(NODE_TEXT_MAX);
	struct node_request rq = { .verb = verb };
	struct err err;

	snprintf(rq.team, sizeof(rq.team), "%s", c->team.id);
	memcpy(rq.id, c->params[0], sizeof(rq.id));
	c->on_refused = sandbox_fail;
	if (json_encode(text, &out, &err) < 0)
		api_fail(c, 400, "the network is larger than %d KiB", NODE_TEXT_MAX / 1024);
	else
		secret_fill(c, &rq, buf_view(&out), API_NODE_MS, on_done);
}

/* All of it is replaced, so nothing at all is a mistake, not a wish. */
static void sandbox_network(struct api_call *c)
{
	AUTO(json_decrefp) json_t *body = NULL, *text = NULL;
	struct err err;

	if (!sandbox_take_id(c))
		return;
	if (c->body.len == 0) {
		api_fail(c, 400, "the body is missing: {} lets go of all rules");
		return;
	}
	if (api_body(c, &body) < 0)
		return;
	if (network_request_update(body, &text, &err) < 0 ||
	    key_services_add(c->services, text, &err) < 0)
		api_fail_err(c, &err);
	else
		ask_with(c, NODE_NETWORK, text, sandbox_on_no_content);
}

/* What node says, as it is. */
static void on_told(struct api_call *c, struct node_answer *said)
{
	json_t *told = api_node_json(c, said, "answer");

	if (told)
		api_answer(c, 200, told);
}

/* `?to=example.com:443`; without it: what is in force. */
static void admin_explain(struct api_call *c)
{
	AUTO(buf_done) struct buf question = BUF_MAX(QUESTION_MAX);
	AUTO(json_decrefp) json_t *text = NULL;
	struct err err;

	if (target_param(c->query, "to", &question, &err) < 0) {
		api_fail(c, 400, "%s", err.msg);
		return;
	}
	text = question.len > 0 ? json_pack("{s:o}", "question", json_text(buf_view(&question)))
				: json_object();
	ask_with(c, NODE_EXPLAIN, text, on_told);
}

static void admin_sandbox_explain(struct api_call *c)
{
	if (sandbox_take_id(c))
		admin_explain(c);
}

static void admin_sandbox_egress(struct api_call *c)
{
	if (sandbox_take_id(c))
		sandbox_ask(c, &(struct node_request){ .verb = NODE_EGRESS_LOG }, API_NODE_MS,
			    on_told);
}

const struct route network_routes[] = {
	{ "PUT", "/sandboxes/{sandboxID}/network", AUTH_KEY, sandbox_network, true },
	{ "GET", "/admin/explain", AUTH_ADMIN, admin_explain }, /* of a sandbox without rules */
	{ "GET", "/admin/sandboxes/{sandboxID}/explain", AUTH_ADMIN, admin_sandbox_explain },
	{ "GET", "/admin/sandboxes/{sandboxID}/egress", AUTH_ADMIN, admin_sandbox_egress },
	{ 0 },
};
