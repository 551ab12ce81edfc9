/* sandbox_routes.c - create, get, kill, and why one is no more. */
#include "gateway/api/answer.h"
#include "gateway/api/sandbox_ask.h"
#include "gateway/api/sandbox_json.h"
#include "gateway/api/secret_fill.h"
#include "gateway/parse/create_request.h"
#include "gateway/parse/key_services.h"

enum { IDEMPOTENCY_MAX = 255, IDEMPOTENCY_DIGITS = 48 };

static void on_created(struct api_call *c, struct node_answer *said)
{
	api_answer(c, 201, sandbox_json(&said->reply->sandbox, api_domain(c)));
}

/* Whatever it looks like, node keeps a hash of it, which is nobody else's. */
static bool take_idempotency(struct api_call *c, char ret[static NODE_ID_MAX + 1])
{
	AUTO(buf_done) struct buf whole = BUF_MAX(IDEMPOTENCY_MAX + STORE_ID_SIZE + 1);
	char hash[2 * SHA256_SIZE + 1];
	struct bytes key = { 0 };
	struct err err;
	size_t n = http1_find(http_request_head(c->rq), "Idempotency-Key", &key);

	if (n == 0)
		return true;
	if (n > 1 || key.len == 0 || key.len > IDEMPOTENCY_MAX) {
		api_fail(c, 400, "Idempotency-Key must be given once, with 1 to %d bytes",
			 IDEMPOTENCY_MAX);
		return false;
	}
	if (buf_printf(&whole, &err, "%s\n", c->team.id) < 0 || buf_add(&whole, key, &err) < 0) {
		api_fail_err(c, &err);
		return false;
	}
	sha256_hex_of(buf_view(&whole), hash);
	snprintf(ret, NODE_ID_MAX + 1, "%.*s", IDEMPOTENCY_DIGITS, hash);
	return true;
}

static uint32_t flags_of(const struct create_request *want)
{
	return (want->secure ? NODE_SECURE : 0u) | (want->auto_pause ? NODE_AUTO_PAUSE : 0u) |
	       (want->pause_memory ? 0u : NODE_NO_MEMORY) |
	       (want->auto_resume ? NODE_AUTO_RESUME : 0u) | (want->boot ? NODE_BOOT : 0u) |
	       (want->private ? NODE_PRIVATE : 0u) | (want->ingress ? NODE_INGRESS : 0u);
}

/* What was asked for, and what the key adds to it. */
static void ask_create(struct api_call *c, struct node_request *rq, struct create_request *want)
{
	AUTO(buf_done) struct buf text = { 0 };
	struct err err;

	if (template_ref_name(&want->template, c->team.slug, rq->template_id, &err) < 0 ||
	    (c->services[0] && key_services_add(c->services, want->text, &err) < 0) ||
	    create_request_text(want, &text, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	snprintf(rq->team, sizeof(rq->team), "%s", c->team.id);
	memcpy(rq->template_tag, want->template.tag, sizeof(rq->template_tag));
	memcpy(c->params[0], want->template.name, sizeof(want->template.name));
	rq->timeout_s = want->timeout_s;
	rq->flags = flags_of(want);
	sandbox_limit(c, rq);
	c->on_refused = api_fail_reply;
	secret_fill(c, rq, buf_view(&text), API_CREATE_MS, on_created);
}

static void sandbox_create(struct api_call *c)
{
	struct node_request rq = { .verb = NODE_CREATE };
	enum api_version version = c->route->v2 ? API_V2 : API_V1;
	struct create_request want;
	struct err err;

	if (!take_idempotency(c, rq.idempotency))
		return;
	if (create_request_parse(buf_view(&c->body), version, &want, &err) < 0) {
		api_fail_err(c, &err);
		return;
	}
	if (want.ignored[0])
		api_warn(c, "ignored, for nobody knows it: %s", want.ignored);
	ask_create(c, &rq, &want);
	create_request_done(&want);
}

static void on_got(struct api_call *c, struct node_answer *said)
{
	AUTO(json_decrefp) json_t *text = sandbox_text(said->after);

	api_answer(c, 200, sandbox_detail_json(&said->reply->sandbox, text, api_domain(c)));
}

static void sandbox_get(struct api_call *c)
{
	if (sandbox_take_id(c))
		sandbox_ask(c, &(struct node_request){ .verb = NODE_GET }, API_NODE_MS, on_got);
}

static void sandbox_kill(struct api_call *c)
{
	if (sandbox_take_id(c))
		sandbox_ask(c, &(struct node_request){ .verb = NODE_KILL }, API_CREATE_MS,
			    sandbox_on_no_content);
}

/* For an operator: what it is, or what became of it. */
static void on_why(struct api_call *c, struct node_answer *said)
{
	if (said->err &&
	    (said->err->code != ERR_NOT_FOUND || !said->reply || !said->reply->sandbox.reason))
		sandbox_fail(c, said);
	else
		api_answer(c, 200, sandbox_why_json(&said->reply->sandbox, c->params[0]));
}

static void admin_sandbox_why(struct api_call *c)
{
	c->on_refused = NULL; /* on_why() knows more */
	if (sandbox_take_id(c))
		sandbox_ask_or(c, &(struct node_request){ .verb = NODE_GET }, API_NODE_MS, on_why);
}

const struct route sandbox_routes[] = {
	{ "POST", "/sandboxes", AUTH_KEY, sandbox_create, true },
	{ "POST", "/v2/sandboxes", AUTH_KEY, sandbox_create, true, .v2 = true },
	{ "GET", "/sandboxes/{sandboxID}", AUTH_KEY, sandbox_get },
	{ "DELETE", "/sandboxes/{sandboxID}", AUTH_KEY, sandbox_kill },
	{ "DELETE", "/admin/sandboxes/{sandboxID}", AUTH_ADMIN, sandbox_kill },
	{ "GET", "/admin/sandboxes/{sandboxID}/why", AUTH_ADMIN, admin_sandbox_why },
	{ 0 },
};
