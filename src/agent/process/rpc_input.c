/* rpc_input.c - process.Process/SendInput: bytes for a process, answered once they are on their
 * way.
 *
 * A process that does not read makes its writers wait, one after the other, each as long as its
 * client wants to.
 */
#include "agent/agent.h"
#include "agent/process/process_request.h"
#include "agent/reply.h"
#include "agent/route.h"
#include "agent/rpc/rpc_stream.h"
#include "agent/rpc/rpc_unary.h"

struct input_call {
	struct rpc_unary unary;
	struct process_input input;
	struct buf data;
	struct agent *agent;
};

static void call_free(struct input_call *c)
{
	stdio_cancel(&c->input);
	buf_done(&c->data);
	free(c);
}

static void finish(struct input_call *c, const struct err *err)
{
	if (err)
		rpc_unary_fail(&c->unary, connect_code_of(err->code), err->msg);
	else
		rpc_unary_answer(&c->unary, BYTES_LIT("{}"));
	call_free(c);
}

static void on_done(struct process_input *in, const struct err *err)
{
	finish(CONTAINER_OF(in, struct input_call, input), err);
}

static void on_message(struct rpc_unary *u, json_t *message)
{
	struct input_call *c = CONTAINER_OF(u, struct input_call, unary);
	struct process_selector which;
	struct process *p;
	struct err err;
	bool to_pty;
	int rc;

	if (selector_parse(message, &which, &err) < 0 ||
	    input_parse(message, &to_pty, &c->data, &err) < 0 ||
	    processes_find(&c->agent->processes, &which, &p, &err) < 0) {
		finish(c, &err);
		return;
	}
	c->input.on_done = on_done;
	rc = stdio_write(&p->stdio, to_pty, &c->input, buf_view(&c->data), &err);
	if (rc != 0)
		finish(c, rc < 0 ? &err : NULL);
}

static void on_gone(struct rpc_unary *u)
{
	call_free(CONTAINER_OF(u, struct input_call, unary));
}

static void route_send_input(struct agent *a, struct http_request *rq)
{
	static const struct rpc_unary_ops ops = { on_message, on_gone };
	struct input_call *c = calloc(1, sizeof(*c));

	if (!c) {
		reply_rpc_fail(rq, CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	c->agent = a;
	c->data = BUF_MAX(RPC_REQUEST_MAX);
	if (!rpc_unary_take(&c->unary, a->loop, rq, &ops, PROCESS_JSON_DEPTH))
		free(c);
}

const struct route input_routes[] = {
	{ "/process.Process/SendInput", "POST", GUARD_CLIENT, route_send_input },
	{ 0 },
};
