/* health.c - see health.h. */
#include "gateway/api/health.h"

#include "gateway/api/answer.h"
#include "gateway/api/api.h"

static void answer(struct api_call *c)
{
	const struct health *h = &c->g->api->health;

	if (!h->reason[0])
		api_answer(c, 204, NULL);
	else
		api_answer(c, 503,
			   json_pack("{s:i, s:o, s:s}", "code", 503, "message",
				     json_text(bytes_str(h->message)), "reason", h->reason));
}

static void learn(struct api_call *c, const char *reason, const char *message)
{
	struct health *h = &c->g->api->health;

	h->known = true;
	h->known_ms = loop_now_ms(c->g->loop);
	h->asked_ms = 0;
	snprintf(h->reason, sizeof(h->reason), "%s", reason);
	snprintf(h->message, sizeof(h->message), "%s", message);
}

/* Node says nothing when it can; else {"reason":, "message":}. */
static void read_said(struct api_call *c, struct bytes said)
{
	AUTO(json_decrefp) json_t *v = NULL;
	const char *reason, *message;
	struct err err;

	if (said.len == 0) {
		learn(c, "", "");
		return;
	}
	if (json_decode(said, NODE_TEXT_MAX, API_DEPTH_MAX, &v, &err) < 0) {
		learn(c, "node_unclear", "node's answer cannot be read");
		return;
	}
	reason = json_string_value(json_object_get(v, "reason"));
	message = json_string_value(json_object_get(v, "message"));
	learn(c, reason && *reason ? reason : "node_unclear", message ? message : "");
}

static void not_there(struct api_call *c, const struct err *err)
{
	learn(c, err->code == ERR_VERSION ? "version_mismatch" : "node_away",
	      err->code == ERR_VERSION ? err->msg : "hotcell-node does not answer");
	answer(c);
}

static void on_said(struct api_call *c, struct node_answer *said)
{
	if (said->err) {
		not_there(c, said->err);
		return;
	}
	read_said(c, said->after);
	answer(c);
}

/* Somebody asks node already: what was known last is told. */
static bool is_asked(const struct health *h, uint64_t now_ms)
{
	return h->known && h->asked_ms && now_ms - h->asked_ms < HEALTH_NODE_MS;
}

void health_get(struct api_call *c)
{
	const struct node_request rq = { .verb = NODE_READY };
	struct health *h = &c->g->api->health;
	uint64_t now_ms = loop_now_ms(c->g->loop);
	struct err err;

	if ((h->known && now_ms - h->known_ms < HEALTH_FRESH_MS) || is_asked(h, now_ms)) {
		answer(c);
		return;
	}
	h->asked_ms = now_ms ? now_ms : 1;
	c->on_node = on_said;
	c->on_refused = NULL;
	if (node_link_call(c->g->node, &c->node, &rq, (struct bytes){ 0 }, HEALTH_NODE_MS,
			   api_on_node, &err) < 0)
		not_there(c, &err);
}
