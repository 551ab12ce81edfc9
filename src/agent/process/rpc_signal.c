/* rpc_signal.c - process.Process/SendSignal.
 *
 * Whoever killed a process may look at once whether it is gone. So the answer to a SIGKILL waits
 * until the process was reaped; but not for ever, as the kernel may have reason to take its time.
 */
#include <signal.h>

#include "agent/agent.h"
#include "agent/process/process_request.h"
#include "agent/reply.h"
#include "agent/route.h"
#include "agent/rpc/rpc_unary.h"

enum { REAPED_MS = 2000 };

struct signal_call {
	struct rpc_unary unary;
	struct process_listener listener;
	struct timer enough;
	struct agent *agent;
};

static void call_free(struct signal_call *c)
{
	timer_stop(&c->enough);
	process_leave(&c->listener);
	free(c);
}

static void answer(struct signal_call *c)
{
	rpc_unary_answer(&c->unary, BYTES_LIT("{}"));
	call_free(c);
}

static void fail(struct signal_call *c, enum connect_code code, const char *why)
{
	rpc_unary_fail(&c->unary, code, why);
	call_free(c);
}

static void on_end(struct process_listener *ln, const struct process_end *end)
{
	(void)end;
	answer(CONTAINER_OF(ln, struct signal_call, listener));
}

static void on_fail(struct process_listener *ln, const struct err *err)
{
	(void)err;
	answer(CONTAINER_OF(ln, struct signal_call, listener));
}

static void on_enough(struct timer *t)
{
	answer(CONTAINER_OF(t, struct signal_call, enough));
}

static void wait_for_end(struct signal_call *c, struct process *p)
{
	static const struct process_listener_ops ops = { .on_end = on_end, .on_fail = on_fail };

	process_listen(p, &c->listener, &ops);
	timer_start(&c->enough, REAPED_MS);
}

static void on_message(struct rpc_unary *u, json_t *message)
{
	struct signal_call *c = CONTAINER_OF(u, struct signal_call, unary);
	struct process_selector which;
	struct process *p;
	struct err err;
	int signo;

	if (selector_parse(message, &which, &err) < 0 || signal_parse(message, &signo, &err) < 0 ||
	    processes_find(&c->agent->processes, &which, &p, &err) < 0)
		fail(c, connect_code_of(err.code), err.msg);
	else if (signo == 0)
		fail(c, CONNECT_UNIMPLEMENTED, "invalid signal: only SIGKILL and SIGTERM");
	else if (process_signal(p, signo, &err) < 0)
		fail(c, connect_code_of(err.code), err.msg);
	else if (signo == SIGKILL)
		wait_for_end(c, p);
	else
		answer(c);
}

static void on_gone(struct rpc_unary *u)
{
	call_free(CONTAINER_OF(u, struct signal_call, unary));
}

static void route_send_signal(struct agent *a, struct http_request *rq)
{
	static const struct rpc_unary_ops ops = { on_message, on_gone };
	struct signal_call *c = calloc(1, sizeof(*c));

	if (!c) {
		reply_rpc_fail(rq, CONNECT_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	c->agent = a;
	timer_init(&c->enough, a->loop, on_enough);
	if (!rpc_unary_take(&c->unary, a->loop, rq, &ops, PROCESS_JSON_DEPTH))
		free(c);
}

const struct route signal_routes[] = {
	{ "/process.Process/SendSignal", "POST", GUARD_CLIENT, route_send_signal },
	{ 0 },
};
