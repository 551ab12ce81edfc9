/* rpc_connect.c - process.Process/Connect: from now on, hear what a process says.
 *
 * What it said before is gone. Its end is told for some time after it, too.
 */
#include "agent/process/process_request.h"
#include "agent/process/rpc_feed.h"
#include "agent/route.h"

static int understand(struct rpc_feed *f, json_t *message, struct process_selector *which,
		      uint64_t *ret_timeout_ms, struct err *err)
{
	if (rpc_timeout(f->stream.rq, ret_timeout_ms, err) < 0)
		return -1;
	return selector_parse(message, which, err);
}

static void on_message(struct rpc_feed *f, struct bytes json)
{
	AUTO(json_decrefp) json_t *message = NULL;
	struct process_selector which;
	const struct past *past;
	uint64_t timeout_ms = 0;
	struct process *p;
	struct err err;

	if (json_decode(json, RPC_REQUEST_MAX, PROCESS_JSON_DEPTH, &message, &err) < 0 ||
	    understand(f, message, &which, &timeout_ms, &err) < 0) {
		rpc_feed_fail(f, connect_code_of(err.code), err.msg);
		return;
	}
	if (processes_find(&f->agent->processes, &which, &p, &err) == 0) {
		rpc_feed_listen(f, p);
		if (timeout_ms > 0)
			timer_start(&f->deadline, timeout_ms);
		return;
	}
	past = processes_past(&f->agent->processes, &which);
	if (past)
		rpc_feed_past(f, past);
	else
		rpc_feed_fail(f, connect_code_of(err.code), err.msg);
}

const struct route connect_routes[] = {
	{ "/process.Process/Connect", "POST", GUARD_CLIENT, .feed = on_message },
	{ 0 },
};
