/* rpc_process.c - the calls of process.Process that have their answer at once. */
#include "agent/agent.h"
#include "agent/process/process_request.h"
#include "agent/route.h"
#include "agent/rpc/rpc_unary.h"

/* The process a message is about. */
static int find(struct agent *a, const json_t *message, struct process **ret,
		struct rpc_fault *fault)
{
	struct process_selector which;
	struct err err;

	if (selector_parse(message, &which, &err) < 0 ||
	    processes_find(&a->processes, &which, ret, &err) < 0)
		return rpc_fault_from(fault, &err);
	return 0;
}

static int nothing(struct buf *answer, struct rpc_fault *fault)
{
	struct err err;

	return buf_add(answer, BYTES_LIT("{}"), &err) < 0 ? rpc_fault_from(fault, &err) : 0;
}

static int list(struct agent *a, const json_t *message, struct buf *answer, struct rpc_fault *fault)
{
	struct err err;

	(void)message;
	if (processes_put_list(&a->processes, answer, &err) < 0)
		return rpc_fault_from(fault, &err);
	return 0;
}

static int close_stdin(struct agent *a, const json_t *message, struct buf *answer,
		       struct rpc_fault *fault)
{
	struct process *p;
	struct err err;

	if (find(a, message, &p, fault) < 0)
		return -1;
	if (stdio_shut(&p->stdio, &err) < 0)
		return rpc_fault_set(fault, CONNECT_UNKNOWN, "%s", err.msg);
	return nothing(answer, fault);
}

static int update(struct agent *a, const json_t *message, struct buf *answer,
		  struct rpc_fault *fault)
{
	struct pty_size size;
	struct process *p;
	struct err err;
	bool has_pty;

	if (find(a, message, &p, fault) < 0)
		return -1;
	if (pty_parse(message, &has_pty, &size, &err) < 0 ||
	    (has_pty && stdio_resize(&p->stdio, &size, &err) < 0))
		return rpc_fault_from(fault, &err);
	return nothing(answer, fault);
}

const struct route process_routes[] = {
	{ "/process.Process/List", "POST", GUARD_CLIENT, .quick = list },
	{ "/process.Process/CloseStdin", "POST", GUARD_CLIENT, .quick = close_stdin },
	{ "/process.Process/Update", "POST", GUARD_CLIENT, .quick = update },
	{ 0 },
};
