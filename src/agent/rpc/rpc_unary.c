/* rpc_unary.c - see rpc_unary.h. */
#include "agent/rpc/rpc_unary.h"

#include "agent/agent.h"
#include "agent/reply.h"
#include "agent/rpc/rpc_stream.h"

static struct rpc_unary *of(struct http_handler *h)
{
	return CONTAINER_OF(h, struct rpc_unary, handler);
}

static void release(struct rpc_unary *u)
{
	timer_stop(&u->deadline);
	buf_done(&u->in);
	long_answer_drop(&u->sending);
	u->rq = NULL;
}

void rpc_unary_answer(struct rpc_unary *u, struct bytes json)
{
	struct http_request *rq = u->rq;

	release(u);
	reply_json(rq, json);
}

void rpc_unary_fail(struct rpc_unary *u, enum connect_code code, const char *message)
{
	struct http_request *rq = u->rq;

	release(u);
	reply_rpc_fail(rq, code, message);
}

bool rpc_unary_send(struct rpc_unary *u, struct buf *json)
{
	struct err err;

	timer_stop(&u->deadline);
	if (long_answer_begin(&u->sending, u->rq, json, &err) == 0)
		return long_answer_push(&u->sending, u->rq);
	rpc_unary_fail(u, CONNECT_INTERNAL, err.msg);
	return true;
}

static void refuse(struct rpc_unary *u, enum connect_code code, const char *why)
{
	rpc_unary_fail(u, code, why);
	u->ops->on_gone(u);
}

static void on_body(struct http_handler *h, struct bytes piece)
{
	struct rpc_unary *u = of(h);
	struct err err;

	if (!u->lost && buf_add(&u->in, piece, &err) < 0)
		u->lost = true; /* said when the body is over */
}

static void on_body_end(struct http_handler *h)
{
	struct rpc_unary *u = of(h);
	AUTO(json_decrefp) json_t *message = NULL;
	struct err err;

	if (u->lost) {
		refuse(u, CONNECT_RESOURCE_EXHAUSTED, "no memory for the request");
	} else if (json_decode(buf_view(&u->in), RPC_REQUEST_MAX, u->depth, &message, &err) < 0) {
		refuse(u, connect_code_of(err.code), err.msg);
	} else {
		buf_done(&u->in);
		u->ops->on_message(u, message);
	}
}

static void on_drain(struct http_handler *h)
{
	struct rpc_unary *u = of(h);

	if (http_responded(u->rq) && long_answer_push(&u->sending, u->rq))
		u->ops->on_gone(u);
}

static void on_gone(struct http_handler *h, const struct err *err)
{
	struct rpc_unary *u = of(h);

	(void)err;
	release(u);
	u->ops->on_gone(u);
}

static void on_deadline(struct timer *t)
{
	refuse(CONTAINER_OF(t, struct rpc_unary, deadline), CONNECT_DEADLINE_EXCEEDED,
	       "context deadline exceeded");
}

bool rpc_unary_take(struct rpc_unary *u, struct loop *l, struct http_request *rq,
		    const struct rpc_unary_ops *ops, unsigned int depth)
{
	static const struct http_handler_ops handler_ops = { on_body, on_body_end, on_drain,
							     on_gone };
	uint64_t timeout_ms;
	struct err err;

	if (!request_is(rq, "application/json")) {
		reply_fail(rq, 415, "content-type must be application/json");
		return false;
	}
	if (rpc_timeout(rq, &timeout_ms, &err) < 0) {
		reply_rpc_fail(rq, CONNECT_INVALID_ARGUMENT, err.msg);
		return false;
	}
	*u = (struct rpc_unary){
		.ops = ops,
		.handler = { &handler_ops },
		.rq = rq,
		.in = BUF_MAX(RPC_REQUEST_MAX),
		.depth = depth,
	};
	timer_init(&u->deadline, l, on_deadline);
	if (timeout_ms > 0)
		timer_start(&u->deadline, timeout_ms);
	http_request_take(rq, &u->handler);
	http_body_start(rq, u->in.max);
	return true;
}

/* --- calls that have their answer at once ------------------------------------------------- */

struct quick_call {
	struct rpc_unary unary;
	struct agent *agent;
	rpc_quick_fn *run;
	struct buf answer;
};

static struct quick_call *quick_of(struct rpc_unary *u)
{
	return CONTAINER_OF(u, struct quick_call, unary);
}

static void quick_free(struct quick_call *c)
{
	buf_done(&c->answer);
	free(c);
}

static void on_quick_message(struct rpc_unary *u, json_t *message)
{
	struct quick_call *c = quick_of(u);
	struct rpc_fault fault = { .code = CONNECT_INTERNAL };

	if (c->run(c->agent, message, &c->answer, &fault) < 0) {
		rpc_unary_fail(u, fault.code, fault.why);
	} else if (c->answer.len <= HTTP_WHOLE_MAX) {
		rpc_unary_answer(u, buf_view(&c->answer));
	} else if (!rpc_unary_send(u, &c->answer)) {
		return;
	}
	quick_free(c);
}

static void on_quick_gone(struct rpc_unary *u)
{
	quick_free(quick_of(u));
}

void rpc_quick(struct agent *a, struct http_request *rq, unsigned int depth, rpc_quick_fn *run)
{
	static const struct rpc_unary_ops ops = { on_quick_message, on_quick_gone };
	struct quick_call *c = calloc(1, sizeof(*c));

	if (!c) {
		reply_rpc_fail(rq, CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	c->agent = a;
	c->run = run;
	c->answer = BUF_MAX(RPC_ANSWER_MAX);
	if (!rpc_unary_take(&c->unary, a->loop, rq, &ops, depth))
		free(c);
}
