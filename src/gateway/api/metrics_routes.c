/* metrics_routes.c - GET /metrics: the gateway's figures, and node's behind them. */
#include "gateway/api/answer.h"
#include "gateway/api/api.h"
#include "gateway/api/routes.h"

enum {
	METRICS_NODE_MS = 4000, /* less than the ten seconds in which Prometheus wants an answer */
	METRICS_OWN_MAX = 256 * 1024,
};

static struct figures_now now_of(const struct gateway *g, bool node_up)
{
	const struct api *a = g->api;

	return (struct figures_now){
		.calls = a->n_calls,
		.connections = a->public ? a->public->n_conns : 0,
		.connections_max = a->connections_max,
		.streams = g->relays.n,
		.node_up = node_up,
	};
}

static void on_figures(struct api_call *c, struct node_answer *said)
{
	const struct figures_now now = now_of(c->g, !said->err);
	AUTO(buf_done) struct buf out = BUF_MAX(METRICS_OWN_MAX + NODE_MESSAGE_MAX);
	struct exposition e = { .out = &out };
	struct err err;

	figures_put(&c->g->figures, &now, &e);
	if (e.failed || (!said->err && buf_add(&out, said->after, &err) < 0))
		api_fail(c, 500, "no memory for the figures");
	else
		api_answer_text(c, BYTES_LIT(EXPOSITION_TYPE), &out);
}

static void metrics_get(struct api_call *c)
{
	const struct node_request rq = { .verb = NODE_FIGURES };
	struct node_answer none = { 0 };
	struct err err;

	c->on_node = on_figures;
	c->on_refused = NULL;
	if (node_link_call(c->g->node, &c->node, &rq, (struct bytes){ 0 }, METRICS_NODE_MS,
			   api_on_node, &err) == 0)
		return;
	none.err = &err;
	on_figures(c, &none);
}

const struct route metrics_routes[] = {
	{ "GET", "/metrics", AUTH_ADMIN, metrics_get },
	{ 0 },
};
